"""What a graph is planned for: number of devices, links, contention and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

UNLIMITED = "unlimited"
UNLIMITED_BYTES = 10**15


@dataclass(frozen=True)
class Setting:
    devices: int
    link: str  # "50GB/s+10us": bandwidth and overhead
    contention: str  # "on" or "off"
    memory: str  # UNLIMITED or a multiple of the even share such as "1.3"

    @property
    def machine(self) -> str:
        return f"{self.devices} x {self.link}"

    def limit_bytes(self, whole_bytes: int) -> int:
        """Memory of each device when the step on one device needs `whole_bytes`."""
        if self.memory == UNLIMITED:
            return UNLIMITED_BYTES
        whole, _, digits = self.memory.partition(".")
        return whole_bytes * int(whole + digits) // (10 ** len(digits) * self.devices)

    def options(self, whole_bytes: int) -> list[str]:
        bandwidth, overhead = self.link.split("+")
        return [
            *("--devices", str(self.devices), "--memory", str(self.limit_bytes(whole_bytes))),
            *("--bandwidth", bandwidth, "--overhead", overhead, "--latency", "0"),
            *("--contention", self.contention),
        ]


def every(
    devices: list[int], links: list[str], contention: list[str], memory: list[str]
) -> Iterator[Setting]:
    """All combinations, those of one memory together."""
    for wanted in memory:
        for link in links:
            for busy in contention:
                for count in devices:
                    yield Setting(count, link, busy, wanted)
