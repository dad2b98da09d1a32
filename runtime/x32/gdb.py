"""gdb on x32 programs that the runtime runs.

    gdb -x gdb.py --args x32run ./program        (or: widthwise exec --gdb ./program)

To gdb the process is x32run, a 64-bit program. What it maps below 4 GiB are files that gdb could read if it knew where they
lie: this tells it, when the program is loaded and whenever its loader has loaded another library.
"""

import gdb
from gdb.unwinder import Unwinder, register_unwinder

FOUR_GIB = 1 << 32
X32_ELF = (b"\x7fELF\x01\x01", b"\x3e\x00")

known = {}


def lowest_mappings():
    """The files mapped below 4 GiB, each with the address of its first byte."""
    found = {}
    with open("/proc/%d/maps" % gdb.selected_inferior().pid) as maps:
        for line in maps:
            words = line.split(None, 5)
            start = int(words[0].split("-")[0], 16)
            if start < FOUR_GIB and len(words) == 6 and words[5].startswith("/") and int(words[2], 16) == 0:
                found.setdefault(words[5].rstrip("\n"), start)
    return found


def first_load_address(path):
    """The address for which the file's first byte was linked; None if it is no x32 file (ELF, System V ABI, chapter 5)."""
    try:
        with open(path, "rb") as file:
            header = file.read(52)
            if header[:6] != X32_ELF[0] or header[18:20] != X32_ELF[1]:
                return None
            number = lambda text, at, size: int.from_bytes(text[at : at + size], "little")
            file.seek(number(header, 28, 4))
            size = number(header, 42, 2)
            for _ in range(number(header, 44, 2)):
                entry = file.read(size)
                if number(entry, 0, 4) == 1:
                    return number(entry, 8, 4) - number(entry, 4, 4)
    except OSError:
        pass
    return None


def load_symbols():
    """Tells gdb of every x32 file that it does not know yet."""
    for path, start in lowest_mappings().items():
        linked = first_load_address(path)
        if linked is None or known.get(path) == start:
            continue
        forget_symbols([path])
        known[path] = start
        gdb.execute('add-symbol-file "%s" -o 0x%x' % (path, start - linked), False, True)


def forget_symbols(paths):
    """Takes that back for those of these files that gdb was given."""
    for path in paths:
        if known.pop(path, None) is not None:
            gdb.execute('remove-symbol-file "%s"' % path, False, True)


class Loaded(gdb.Breakpoint):
    """Where something has just been mapped. The program goes on by itself."""

    def __init__(self, where):
        super().__init__(where, internal=True)
        self.silent = True

    def stop(self):
        load_symbols()
        return False


class Begun(Loaded):
    """The program is mapped, and nothing of it has been executed. What an earlier `run` has left is stale: gdb took the
    breakpoints out of what was not mapped yet."""

    watches = None

    def stop(self):
        places.read()
        forget_symbols(list(known))
        again = super().stop()
        if not Begun.watches:
            # Called by the x32 loader whenever its list of libraries has changed. Earlier there is no such name.
            Begun.watches = Loaded("_dl_debug_state")
        return again


class Places:
    """Where the runtime's own code lies, and the numbers of offsets.h that it takes to find the way back."""

    PROGRAM_RSP, STACK_TOP, STACK = 8, 16, 1 << 16
    FRAME = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r9", "r8", "r10", "rdx", "rsi", "rdi")
    FRAME_RIP, FRAME_SIZE = 112, 128

    def __init__(self):
        self.code = self.code_end = self.stubs = self.stubs_end = 0

    def read(self):
        self.stubs, self.stubs_end = (int(gdb.parse_and_eval("&" + name)) for name in ("x32_stubs", "x32_stubs_end"))
        self.code, self.code_end = (int(gdb.parse_and_eval("&" + name)) for name in ("__executable_start", "etext"))


    def in_stub(self, rip):
        return self.stubs <= rip < self.stubs_end


places = Places()


def way_back(code, rip):
    """Where a stub goes on after its `syscall`, which is at `rip`, before it, or just passed: a comparison with %eax or %rax, if the
    site had one, and a jump, direct or through the eight bytes behind it (put_jump, stubs.c)."""
    call = code.find(b"\x0f\x05")
    at = 0 if code[:1] in (b"\xe9", b"\xff", b"\x3d") or code[:2] == b"\x48\x3d" else call + 2
    if code[at : at + 1] == b"\x3d":
        at += 5
    elif code[at : at + 2] == b"\x48\x3d":
        at += 6
    if code[at : at + 1] == b"\xe9":
        return rip + at + 5 + int.from_bytes(code[at + 1 : at + 5], "little", signed=True)
    if code[at : at + 2] == b"\xff\x25":
        return int.from_bytes(code[at + 6 : at + 14], "little")
    return None


class EntryPoints(Unwinder):
    """From the runtime, which has a stack of its own and no unwind tables, back to the program that called."""

    class Frame:
        def __init__(self, sp, pc):
            self.sp, self.pc = sp, pc

    def __init__(self):
        super().__init__("x32run")

    def __call__(self, frame):
        rip, rsp = int(frame.read_register("rip")), int(frame.read_register("rsp"))
        whole = gdb.selected_inferior().architecture().integer_type(64, False)
        memory = gdb.selected_inferior().read_memory

        def number(at):
            return int.from_bytes(bytes(memory(at, 8)), "little")

        saved = {}
        if places.in_stub(rip):
            # The stack is the program's.
            back = way_back(bytes(memory(rip, 64)), rip)
            if back is None:
                return None
            saved = {name: int(frame.read_register(name)) for name in Places.FRAME}
            saved["rip"], saved["rsp"] = back, rsp
        elif places.code <= rip < places.code_end:
            thread = int(frame.read_register("gs_base"))
            top = number(thread + Places.STACK_TOP) if thread else 0
            if not top - Places.STACK < rsp < top:
                return None
            at = top - Places.FRAME_SIZE
            saved = {name: number(at + 8 * index) for index, name in enumerate(Places.FRAME)}
            saved["rip"], saved["rsp"] = number(at + Places.FRAME_RIP), number(thread + Places.PROGRAM_RSP)
        # A call of a site that several numbers pass comes back by way of its stub.
        back = saved.get("rip", 0)
        if not (0 < back < FOUR_GIB or places.in_stub(back)):
            return None
        for name in saved:
            saved[name] = gdb.Value(saved[name]).cast(whole)
        info = frame.create_unwind_info(EntryPoints.Frame(saved["rsp"], gdb.Value(rip).cast(whole)))
        for name, value in saved.items():
            info.add_saved_register(name, value)
        return info


gdb.execute("set confirm off")
gdb.execute("set breakpoint pending on")
# Or gdb would try libthread_db beside the x32 C library, and say why not: it is of 32 bits.
gdb.execute("set auto-load libthread-db off", False, True)
# The runtime's own signal: a call that it has not rewritten yet.
gdb.execute("handle SIGSYS nostop noprint pass", False, True)
Begun("x32_start")
register_unwinder(None, EntryPoints(), replace=True)
