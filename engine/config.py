"""`EngineConfig`: the scheduler's options under SGLang's names, checked once."""

from dataclasses import dataclass, replace

from engine.errors import ConfigError

__all__ = ["CHUNKING_OFF", "EngineConfig"]

CHUNKING_OFF = -1
MOST = 2**31 - 1  # token counts and pages are 32-bit integers in batches and traces
DEFAULT_CHUNKED_PREFILL_SIZE = 4096  # SGLang's choice for a device of unknown memory


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Options of one engine; None is "auto" until `resolve` has filled it.

    Names and defaults are SGLang's server arguments. Raises ConfigError, naming option and mend.
    """

    chunked_prefill_size: int | None = None
    max_prefill_tokens: int = 16384
    page_size: int = 1
    max_total_tokens: int | None = None
    enable_mixed_chunk: bool = False
    disable_overlap_schedule: bool = False
    disable_radix_cache: bool = False
    schedule_policy: str = "fcfs"
    schedule_conservativeness: float = 1.0
    max_running_requests: int | None = None
    context_length: int | None = None

    def __post_init__(self) -> None:
        _in_range("page-size", self.page_size)
        _in_range("max-prefill-tokens", self.max_prefill_tokens)
        for option, value in (
            ("max-total-tokens", self.max_total_tokens),
            ("max-running-requests", self.max_running_requests),
            ("context-length", self.context_length),
        ):
            if value is not None:
                _in_range(option, value)
        self._check_chunk()
        if self.max_total_tokens is not None and self.max_total_tokens < self.page_size:
            raise ConfigError(
                f"--max-total-tokens {self.max_total_tokens} holds no page of {self.page_size} tokens: "
                "give at least one page"
            )
        if not 0 < self.schedule_conservativeness < float("inf"):
            raise ConfigError(
                f"--schedule-conservativeness {self.schedule_conservativeness}: give a number above 0"
            )
        if self.schedule_policy != "fcfs":
            raise ConfigError(f"--schedule-policy {self.schedule_policy!r} is not known: give fcfs")

    def _check_chunk(self) -> None:
        chunk = self.chunked_prefill_size
        if chunk is None or chunk == CHUNKING_OFF:
            if self.enable_mixed_chunk and chunk == CHUNKING_OFF:
                raise ConfigError(
                    "--enable-mixed-chunk needs chunked prefill: give a --chunked-prefill-size above 0"
                )
            return
        if chunk < 1:
            raise ConfigError(f"--chunked-prefill-size {chunk}: give -1 (off) or a number of tokens above 0")
        _in_range("chunked-prefill-size", chunk)
        if chunk % self.page_size:
            raise ConfigError(
                f"--chunked-prefill-size {chunk} is no multiple of --page-size {self.page_size}: "
                f"give {max(1, round(chunk / self.page_size)) * self.page_size}"
            )

    @property
    def chunk_tokens(self) -> int | None:
        """The chunk budget in tokens, or None when chunking is off. Only for a resolved config."""
        return None if self.chunked_prefill_size == CHUNKING_OFF else self.chunked_prefill_size

    def resolve(self, *, max_total_tokens: int, context_length: int) -> "EngineConfig":
        """A config without "auto": the given values fill what the user left open.

        `max_running_requests` follows SGLang: clamp(pool / context * 512, 2048, 4096), at most half the pool.
        """
        pool = self.max_total_tokens or max_total_tokens
        context = self.context_length or context_length
        by_context = max(2048, min(4096, pool * 512 // context))
        slots = self.max_running_requests or max(1, min(by_context, pool // 2))
        slots = min(slots, max(1, pool // self.page_size))  # each request holds a page
        chunk = self.chunked_prefill_size
        if chunk is None:
            chunk = -(-DEFAULT_CHUNKED_PREFILL_SIZE // self.page_size) * self.page_size
        return replace(
            self,
            chunked_prefill_size=chunk,
            max_total_tokens=pool,
            max_running_requests=slots,
            context_length=context,
        )


def _in_range(option: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"--{option} {value} is below 1: give 1 or more")
    if value > MOST:
        raise ConfigError(f"--{option} {value} is above {MOST}: give {MOST} or less")
