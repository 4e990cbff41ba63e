"""`EngineConfig`: the scheduler's options under SGLang's names, checked once."""

from dataclasses import dataclass, replace

from engine.errors import ConfigError

__all__ = ["CACHE_AWARE_POLICIES", "CHUNKING_OFF", "SCHEDULE_POLICIES", "EngineConfig"]

CHUNKING_OFF = -1
MOST = 2**31 - 1  # token counts and pages are 32-bit integers in batches and traces
DEFAULT_CHUNKED_PREFILL_SIZE = 4096  # SGLang's choice for a device of unknown memory
DEFAULT_PREEMPTION_THRESHOLD = 10
CACHE_AWARE_POLICIES = ("lpm", "dfs-weight", "shortest-prefill-first")
SCHEDULE_POLICIES = ("fcfs", "lof", "random", *CACHE_AWARE_POLICIES)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Options of one engine; None is "auto" until `resolve` has filled it.

    Names and defaults are SGLang's server arguments. Raises ConfigError, naming option and mend. `resolve`
    also replaces what cannot work: a policy that asks the prefix cache runs as fcfs without one.
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
    prefill_max_requests: int | None = None  # requests with new prompt tokens in one forward
    prefill_decode_interval: int = 0  # decode rounds between two prefill forwards
    prefill_decode_interval_min_bs: int = 0  # fewer running requests defer no prefill
    truncation_align_size: int | None = None  # a first chunk's length is a multiple of it
    enable_priority_scheduling: bool = False
    disable_priority_preemption: bool = False
    priority_scheduling_preemption_threshold: int = DEFAULT_PREEMPTION_THRESHOLD
    schedule_low_priority_values_first: bool = False
    random_seed: int = 0  # of the random policy

    def __post_init__(self) -> None:
        _in_range("page-size", self.page_size)
        _in_range("max-prefill-tokens", self.max_prefill_tokens)
        for option, value in (
            ("max-total-tokens", self.max_total_tokens),
            ("max-running-requests", self.max_running_requests),
            ("context-length", self.context_length),
            ("prefill-max-requests", self.prefill_max_requests),
            ("truncation-align-size", self.truncation_align_size),
        ):
            if value is not None:
                _in_range(option, value)
        _in_range("prefill-decode-interval", self.prefill_decode_interval, least=0)
        _in_range("prefill-decode-interval-min-bs", self.prefill_decode_interval_min_bs, least=0)
        self._check_chunk()
        self._check_alignment()
        self._check_priorities()
        if self.max_total_tokens is not None and self.max_total_tokens < self.page_size:
            raise ConfigError(
                f"--max-total-tokens {self.max_total_tokens} holds no page of {self.page_size} tokens: "
                "give at least one page"
            )
        if not 0 < self.schedule_conservativeness < float("inf"):
            raise ConfigError(
                f"--schedule-conservativeness {self.schedule_conservativeness}: give a number above 0"
            )
        if self.schedule_policy not in SCHEDULE_POLICIES:
            known = ", ".join(SCHEDULE_POLICIES)
            raise ConfigError(f"--schedule-policy {self.schedule_policy!r} is not known: give {known}")

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

    def _check_alignment(self) -> None:
        """A chunk must hold an aligned piece of at least a page, else a longer prompt never starts."""
        chunk, align = self.chunked_prefill_size, self.truncation_align_size
        if chunk is None or chunk == CHUNKING_OFF or align is None:
            return
        if chunk < align:
            raise ConfigError(
                f"--chunked-prefill-size {chunk} is below --truncation-align-size {align}: "
                f"give a chunk of {-(-align // self.page_size) * self.page_size} or more"
            )
        if chunk // align * align < self.page_size:
            raise ConfigError(
                f"--truncation-align-size {align} leaves no page of {self.page_size} tokens in a chunk of "
                f"{chunk}: give a multiple of --page-size"
            )

    def _check_priorities(self) -> None:
        _in_range(
            "priority-scheduling-preemption-threshold", self.priority_scheduling_preemption_threshold, least=0
        )
        if self.enable_priority_scheduling:
            return
        threshold = self.priority_scheduling_preemption_threshold
        for given, option in (
            (self.disable_priority_preemption, "--disable-priority-preemption"),
            (self.schedule_low_priority_values_first, "--schedule-low-priority-values-first"),
            (
                threshold != DEFAULT_PREEMPTION_THRESHOLD,
                f"--priority-scheduling-preemption-threshold {threshold}",
            ),
        ):
            if given:
                raise ConfigError(
                    f"{option} does nothing without priorities: add --enable-priority-scheduling"
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
        without_cache = self.disable_radix_cache and self.schedule_policy in CACHE_AWARE_POLICIES
        return replace(
            self,
            schedule_policy="fcfs" if without_cache else self.schedule_policy,
            chunked_prefill_size=chunk,
            max_total_tokens=pool,
            max_running_requests=slots,
            context_length=context,
        )


def _in_range(option: str, value: int, least: int = 1) -> None:
    if value < least:
        raise ConfigError(f"--{option} {value} is below {least}: give {least} or more")
    if value > MOST:
        raise ConfigError(f"--{option} {value} is above {MOST}: give {MOST} or less")
