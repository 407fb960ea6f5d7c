# Work for an interpreter whose stacks are captured: it ends long after they are.
import re


def fib(n):
    return n if n < 2 else sorted([fib(n - 1), fib(n - 2)], key=lambda v: -v)[0] + fib(n - 2)


for _ in range(1000):
    re.sub("b+", lambda m: str(fib(12)), "abbcbbbd" * 10)
