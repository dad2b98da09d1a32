"""M/M/1 at 0.9 with a million customers in SimPy, as its users write it; see mm1.cpp."""

import random
import sys
import time

import simpy


def customer(env, server, total):
    arrived = env.now
    with server.request() as request:
        yield request
        yield env.timeout(random.expovariate(1 / 0.9))
    total[0] += env.now - arrived


def arrivals(env, server, total, count):
    for _ in range(count):
        yield env.timeout(random.expovariate(1.0))
        env.process(customer(env, server, total))


count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
began = time.perf_counter()
random.seed(1)
env = simpy.Environment()
total = [0.0]
env.process(arrivals(env, simpy.Resource(env, 1), total, count))
env.run()
print(f"{time.perf_counter() - began:.4f} s  mean {total[0] / count:.4f}")
