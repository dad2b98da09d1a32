#include "widthwise/sim/cvode.hpp"

#include "continuous/schemes.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#ifdef WIDTHWISE_SIM_SUNDIALS
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>
#endif

namespace widthwise::sim {

#ifdef WIDTHWISE_SIM_SUNDIALS
namespace {

/// The least error allowed: the square of its inverse is a number.
constexpr double least_allowed = 1e-140;

bool finite(double x) { return x - x == 0.0; }
bool all_finite(std::span<const double> values) { return std::all_of(values.begin(), values.end(), finite); }

} // namespace

struct Cvode::Memory {
    Derivative derivative;
    Control control;
    std::size_t size = 0;
    double time = 0.0;
    std::uint64_t evaluations = 0;
    bool not_finite = false;   // the derivative, in the present step
    std::exception_ptr thrown; // by the derivative: it must not fly through C
    std::vector<double> by_state;
    std::vector<double> by_time;
    SUNContext context = nullptr;
    N_Vector state = nullptr;
    SUNMatrix matrix = nullptr;
    SUNLinearSolver solver = nullptr;
    void *cvode = nullptr;

    ~Memory() {
        if (cvode != nullptr)
            CVodeFree(&cvode);
        if (solver != nullptr)
            SUNLinSolFree(solver);
        if (matrix != nullptr)
            SUNMatDestroy(matrix);
        if (state != nullptr)
            N_VDestroy(state);
        if (context != nullptr)
            SUNContext_Free(&context);
    }
    [[nodiscard]] ErrorContext where() const { return {.process = {}, .serial = 0, .time = time, .seed = 0}; }

    void need(int result, const char *what) const {
        if (result < 0)
            throw BadRequest(std::string("CVODE refused: ") + what + " returned " + std::to_string(result),
                             where());
    }

    static int rate(double t, N_Vector y, N_Vector to, void *self) {
        auto &m = *static_cast<Memory *>(self);
        ++m.evaluations;
        try {
            m.derivative(t, {N_VGetArrayPointer(y), m.size}, {N_VGetArrayPointer(to), m.size});
        } catch (...) {
            m.thrown = std::current_exception();
            return -1;
        }
        if (all_finite({N_VGetArrayPointer(to), m.size}))
            return 0;
        m.not_finite = true;
        return 1; // perhaps a shorter step does not come there
    }
    /// Weights of errors that are only relative. CVODE takes them at a step's beginning, and refuses one of a
    /// component that is 0 there: what it is to become in a short step counts.
    static int weights(N_Vector y, N_Vector to, void *self) {
        auto &m = *static_cast<Memory *>(self);
        const std::span<const double> state(N_VGetArrayPointer(y), m.size);
        const std::span<double> weight(N_VGetArrayPointer(to), m.size);
        if (std::find(state.begin(), state.end(), 0.0) != state.end()) {
            ++m.evaluations;
            try {
                m.derivative(m.time, state, weight);
            } catch (...) {
                m.thrown = std::current_exception();
                return -1;
            }
            m.not_finite = m.not_finite || !all_finite(weight);
        }
        const double length = 1e-10 * std::max(1.0, std::fabs(m.time));
        for (std::size_t k = 0; k < m.size; ++k) {
            const double size = state[k] != 0.0 ? std::fabs(state[k]) : length * std::fabs(weight[k]);
            weight[k] = 1.0 / std::max(m.control.relative * size, least_allowed);
        }
        return 0;
    }
    /// Whether the derivative is not finite just behind the present time.
    [[nodiscard]] bool ends_here() {
        const double unit = std::numeric_limits<double>::epsilon();
        std::vector<double> rates(size);
        ++evaluations;
        derivative(time + 16.0 * unit * std::fabs(time), {N_VGetArrayPointer(state), size}, rates);
        return !all_finite(rates);
    }
    static int jacobian(double t, N_Vector y, N_Vector, SUNMatrix to, void *self, N_Vector, N_Vector,
                        N_Vector) {
        auto &m = *static_cast<Memory *>(self);
        try {
            m.control.jacobian(t, {N_VGetArrayPointer(y), m.size}, m.by_state, m.by_time);
        } catch (...) {
            m.thrown = std::current_exception();
            return -1;
        }
        for (std::size_t i = 0; i < m.size; ++i)
            for (std::size_t k = 0; k < m.size; ++k)
                SM_ELEMENT_D(to, static_cast<sunindextype>(i), static_cast<sunindextype>(k)) =
                    m.by_state[i * m.size + k];
        return 0;
    }
};

bool Cvode::available() noexcept { return true; }

Cvode::Cvode(Formula formula, Derivative derivative, std::vector<double> initial, double start,
             Control control)
    : memory_(std::make_unique<Memory>()) {
    Memory &m = *memory_;
    if (initial.empty() || !derivative)
        throw BadRequest("an integrator needs a state and a derivative", m.where());
    if (!finite(start))
        throw BadTime("an integrator cannot begin at a time that is not finite", {});
    check_control(control, m.where());
    if (!all_finite(initial))
        throw BadState("a state that is not finite was given to CVODE", m.where());
    m.derivative = std::move(derivative);
    m.control = std::move(control);
    m.size = initial.size();
    m.time = start;
#if SUNDIALS_VERSION_MAJOR >= 7
    m.need(SUNContext_Create(SUN_COMM_NULL, &m.context), "SUNContext_Create");
#else
    m.need(SUNContext_Create(nullptr, &m.context), "SUNContext_Create");
#endif
    const auto n = static_cast<sunindextype>(m.size);
    m.state = N_VNew_Serial(n, m.context);
    std::copy(initial.begin(), initial.end(), N_VGetArrayPointer(m.state));
    m.cvode = CVodeCreate(formula == Formula::bdf ? CV_BDF : CV_ADAMS, m.context);
    m.need(CVodeInit(m.cvode, Memory::rate, start, m.state), "CVodeInit");
    m.need(CVodeSetErrHandlerFn(
               m.cvode, [](int, const char *, const char *, char *, void *) {}, nullptr),
           "CVodeSetErrHandlerFn"); // what goes wrong is thrown, not printed
    m.need(CVodeSetUserData(m.cvode, &m), "CVodeSetUserData");
    if (m.control.absolute >= least_allowed)
        m.need(CVodeSStolerances(m.cvode, m.control.relative, m.control.absolute), "CVodeSStolerances");
    else
        m.need(CVodeWFtolerances(m.cvode, Memory::weights), "CVodeWFtolerances");
    m.need(CVodeSetMaxNumSteps(m.cvode, 100000000), "CVodeSetMaxNumSteps");
    if (m.control.longest > 0.0)
        m.need(CVodeSetMaxStep(m.cvode, m.control.longest), "CVodeSetMaxStep");
    m.matrix = SUNDenseMatrix(n, n, m.context);
    m.solver = SUNLinSol_Dense(m.state, m.matrix, m.context);
    m.need(CVodeSetLinearSolver(m.cvode, m.solver, m.matrix), "CVodeSetLinearSolver");
    if (m.control.jacobian) {
        m.by_state.resize(m.size * m.size);
        m.by_time.resize(m.size);
        m.need(CVodeSetJacFn(m.cvode, Memory::jacobian), "CVodeSetJacFn");
    }
}

void Cvode::advance(double to) {
    Memory &m = *memory_;
    if (to - to != 0.0)
        throw BadTime("an integrator can advance to finite times only", m.where());
    if (!(to > m.time))
        return;
    m.need(CVodeSetStopTime(m.cvode, to), "CVodeSetStopTime");
    while (m.time < to) {
        const double before = m.time;
        m.not_finite = false;
        const int result = CVode(m.cvode, to, m.state, &m.time, CV_ONE_STEP);
        if (m.thrown)
            std::rethrow_exception(std::exchange(m.thrown, nullptr));
        if (result == CV_ILL_INPUT)
            throw BadRequest("CVODE refused: CVode returned " + std::to_string(result), m.where());
        const bool stuck = result < 0 || m.time == before;
        if (!all_finite(state()) || (stuck && (m.not_finite || m.ends_here())))
            throw BadState("the state or its derivative is not finite, however short CVODE's step",
                           m.where());
        if (stuck)
            throw AccuracyUnmet(result < 0
                                    ? "CVODE cannot keep the accuracy asked for (its code " +
                                          std::to_string(result) + ")"
                                    : "CVODE cannot keep the accuracy asked for with steps that move the "
                                      "time; allow more, or look for a jump in the derivative",
                                m.where());
    }
}

void Cvode::set(std::size_t component, double value) {
    Memory &m = *memory_;
    if (component >= m.size)
        throw BadRequest("component " + std::to_string(component) + " of a state of " +
                             std::to_string(m.size) + " was set",
                         m.where());
    if (!finite(value))
        throw BadState("component " + std::to_string(component) + " of a state was set to what is not finite",
                       m.where());
    N_VGetArrayPointer(m.state)[component] = value;
    m.need(CVodeReInit(m.cvode, m.time, m.state), "CVodeReInit");
}

std::span<const double> Cvode::state() const noexcept {
    return {N_VGetArrayPointer(memory_->state), memory_->size};
}

#else

struct Cvode::Memory {
    double time = 0.0;
    std::uint64_t evaluations = 0;
};

bool Cvode::available() noexcept { return false; }
Cvode::Cvode(Formula, Derivative, std::vector<double>, double start, Control) {
    ErrorContext where;
    where.time = start;
    throw BadRequest(
        "this build has no CVODE: install SUNDIALS (Debian: libsundials-dev) and configure again", where);
}
void Cvode::advance(double) {}
void Cvode::set(std::size_t, double) {}
std::span<const double> Cvode::state() const noexcept { return {}; }

#endif

Cvode::~Cvode() = default;
double Cvode::time() const noexcept { return memory_->time; }
std::uint64_t Cvode::evaluations() const noexcept { return memory_->evaluations; }

} // namespace widthwise::sim
