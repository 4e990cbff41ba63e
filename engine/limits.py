"""Whether a request can ever be served, and how much it may ask for."""

from engine.config import EngineConfig
from engine.decode_memory import clip_max_new_tokens
from engine.errors import WorkloadError
from engine.request import Request

__all__ = ["check_request"]


def check_request(request: Request, config: EngineConfig) -> None:
    """Lower `max_new_tokens` to what an empty pool and the context hold. `config` must be resolved.

    Raises WorkloadError, naming the request and the mend, for one that can never be served.
    """
    assert config.max_total_tokens is not None
    assert config.context_length is not None
    pool = config.max_total_tokens // config.page_size * config.page_size
    name, prompt_len = request.name, request.prompt_len
    if request.sampling.max_new_tokens < 0:
        raise WorkloadError(
            f"request {name!r}: max_new_tokens is {request.sampling.max_new_tokens}: give 0 or more"
        )
    if prompt_len < 1:
        raise WorkloadError(f"request {name!r} has an empty prompt: give at least one token")
    if prompt_len >= config.context_length:
        raise WorkloadError(
            f"request {name!r}: {prompt_len} prompt tokens reach the context length {config.context_length}: "
            "raise --context-length, take a model with a longer one, or shorten the prompt"
        )
    if prompt_len + config.page_size >= pool:
        raise WorkloadError(
            f"request {name!r}: {prompt_len} prompt tokens never fit {pool} KV tokens: "
            "raise --max-total-tokens or shorten the prompt"
        )
    request.max_new_tokens = clip_max_new_tokens(request, config)
