"""Where each column of a recorded trace comes from: measured, derived, or missing."""

from collections.abc import Iterable, Mapping, Sequence

from traces.schema import TABLES

__all__ = ["COST_COLUMNS", "TOLD_BY_SOME", "column_states"]

CLOCK_COLUMNS = {
    "forwards": (
        *("plan_start_ns", "plan_end_ns", "launch_start_ns", "launch_end_ns"),
        *("start_ns", "end_ns", "result_start_ns", "result_end_ns"),
    ),
    "requests": ("first_scheduled_ns", "first_token_ns", "finish_ns"),
    "events": ("t_ns",),
}
"""By table, what is read off the engine's clock; arrivals are the workload's."""

COST_COLUMNS = (
    *("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head"),
    *("bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation", "activation_est_bytes"),
)
TOLD_BY_SOME = {
    "forwards": ("clock_error_ns", "memory_allocated_bytes", "memory_peak_bytes"),
    "rows": ("inflight_after_plan", "private_pages"),
    "kernels": tuple(TABLES["kernels"].names),
}
"""By table, the columns that an executor, scheduler or profiler may leave unknown."""

NEVER_TOLD = {
    "requests": ("peer_name",),
    "events": ("bytes", "peer_rid", "last"),
}
KERNEL_COSTS = ("tokens", "flops", "bytes")

States = dict[str, dict[str, str]]


def column_states(told: Iterable[tuple[str, str]], *, costs: bool, pages: bool, simulated: bool) -> States:
    """The state of every column by table and name.

    `told` are the columns of TOLD_BY_SOME that have been seen with a value. FLOPs and bytes are derived if
    `costs`, else missing; `pages` says whether page owners are recorded; what is
    read off a simulated run's clock comes from a cost model and is derived.
    """
    states = {table: dict.fromkeys(schema.names, "measured") for table, schema in TABLES.items()}
    _set(states, NEVER_TOLD, "missing")
    _set(states, TOLD_BY_SOME, "missing")
    _set(states, {"forwards": COST_COLUMNS}, "derived" if costs else "missing")
    if simulated:
        _set(states, CLOCK_COLUMNS, "derived")
    if not pages:
        _set(states, {"pages": TABLES["pages"].names}, "missing")
    for table, column in told:
        computed = table == "kernels" and column in KERNEL_COSTS
        states[table][column] = "derived" if computed else "measured"
    return states


def _set(states: States, columns: Mapping[str, Sequence[str]], state: str) -> None:
    for table, names in columns.items():
        states[table].update(dict.fromkeys(names, state))
