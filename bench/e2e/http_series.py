"""What a server did under a load, round by round, and the table's rows."""

import statistics
import time

from series import process_seconds


class ServerSeries:
    """Requests and bytes a second, and the server's CPU seconds for each, of all its processes.
    `per_request`: what is compared is requests, else bytes."""

    def __init__(self, name, per_request):
        self.name, self.per_request = name, per_request
        self.request_rates, self.byte_rates = [], []
        self.cpu_per_request, self.cpu_per_byte = [], []

    def measure(self, pids, work):
        """`work` returns (requests, bytes of bodies, seconds or None: as long as it took)."""
        before = sum(map(process_seconds, pids))
        began = time.monotonic()
        requests, amount, seconds = work()
        seconds = seconds or time.monotonic() - began
        used = sum(map(process_seconds, pids)) - before
        self.request_rates.append(requests / seconds)
        self.byte_rates.append(amount / seconds)
        self.cpu_per_request.append(used / requests)
        self.cpu_per_byte.append(used / amount)

    def _compared(self):
        if self.per_request:
            return self.request_rates, self.cpu_per_request
        return self.byte_rates, self.cpu_per_byte

    def row(self, against=None):
        median = statistics.median
        row = (f"{self.name:<30}{max(self.request_rates):>9.0f}{median(self.request_rates):>9.0f}"
               f"{max(self.byte_rates) / 1e6:>9.1f}{median(self.byte_rates) / 1e6:>9.1f}"
               f"{min(self.cpu_per_request) * 1e5:>9.2f}{median(self.cpu_per_request) * 1e5:>9.2f}"
               f"{min(self.cpu_per_byte) * 1e9:>8.3f}{median(self.cpu_per_byte) * 1e9:>8.3f}")
        if against is not None:
            for mine, others in zip(self._compared(), against._compared()):
                row += f"{median(mine) / (median(others) or float('nan')):>7.2f}"
        return row


HEADER = (f"{'':<30}{'requests/s':>18}{'MB/s':>18}{'CPU s/100k req.':>18}{'CPU s/GB':>16}"
          f"{'ratio':>7}{'ratio':>7}\n"
          f"{'':<30}{'best':>9}{'median':>9}{'best':>9}{'median':>9}{'best':>9}{'median':>9}"
          f"{'best':>8}{'median':>8}{'rate':>7}{'CPU':>7}")
