"""What the sides of a bench have in common: timed commands, rounds, and the table."""

import os
import resource
import statistics
import subprocess
import time


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def process_seconds(pid):
    """Of a process and all its threads so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Series:
    """One way of doing the same work: its rate and CPU seconds in each round. `unit` is what a rate
    counts, `scale` what it is shown in."""

    def __init__(self, name, unit="MB/s", scale=1e6):
        self.name, self.unit, self.scale = name, unit, scale
        self.rates, self.cpu = [], []

    def measure(self, work, amount, node=None, gigabytes=None):
        """`work` is a command, or a function. `amount` over the seconds it took is the rate."""
        before = children_seconds() + (process_seconds(node.pid) if node else 0)
        began = time.monotonic()
        if callable(work):
            work()
        else:
            subprocess.run(work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        after = children_seconds() + (process_seconds(node.pid) if node else 0)
        self.rates.append(amount / seconds)
        self.cpu.append((after - before) / (gigabytes or amount / 1e9))
        return seconds

    def row(self, against=None):
        best, median = max(self.rates), statistics.median(self.rates)
        row = f"{self.name:<46}{best / self.scale:>9.1f}{median / self.scale:>9.1f} {self.unit:<6}"
        row += f"{statistics.median(self.cpu):>9.2f}"
        if against is not None:
            row += f"{best / max(against.rates):>9.2f}"
            row += f"{median / statistics.median(against.rates):>9.2f}"
        return row


HEADER = (f"{'':<46}{'best':>9}{'median':>9} {'':<6}{'CPU s/GB':>9}{'ratio':>9}{'ratio':>9}\n"
          f"{'':<46}{'':>9}{'':>9} {'':<6}{'median':>9}{'of best':>9}{'of med.':>9}")
