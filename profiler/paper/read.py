"""`read_model`: any decoder's `config.json` as a `PaperModel`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from engine.errors import ModelError
from engine.fields import shown
from engine.model_families import FAMILIES
from engine.models.checkpoint import display_name
from engine.models.json_file import read_json_object
from profiler.paper.fields import Config, not_counted, text_part
from profiler.paper.model import PaperModel
from profiler.paper.read_dense import read_dense
from profiler.paper.read_experts import (
    read_deepseek,
    read_gpt_oss,
    read_mixtral,
    read_phimoe,
    read_qwen_moe,
)
from profiler.paper.read_hybrid import read_gemma4, read_qwen_hybrid

__all__ = ["ARCHITECTURES", "model_from", "read_model"]

Reader = Callable[[Config, str], PaperModel]

ARCHITECTURES: Mapping[str, Reader] = {
    **dict.fromkeys(FAMILIES, read_dense),
    "MixtralForCausalLM": read_mixtral,
    "PhiMoEForCausalLM": read_phimoe,
    "PhimoeForCausalLM": read_phimoe,
    "Qwen3MoeForCausalLM": read_qwen_moe,
    "GptOssForCausalLM": read_gpt_oss,
    "DeepseekV2ForCausalLM": read_deepseek,
    "DeepseekV3ForCausalLM": read_deepseek,
    "Qwen3_5ForConditionalGeneration": read_qwen_hybrid,
    "Qwen3_5ForCausalLM": read_qwen_hybrid,
    "Qwen3_5MoeForConditionalGeneration": read_qwen_hybrid,
    "Qwen3_5MoeForCausalLM": read_qwen_hybrid,
    "Gemma4ForConditionalGeneration": read_gemma4,
    "Gemma4ForCausalLM": read_gemma4,
}
"""By the class that `architectures` names."""

NEAR_NAMES = 3


def read_model(path: Path) -> PaperModel:
    """The model of a `config.json`, or of the one in a directory. ModelError if none is known."""
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        wrong = "is no regular file" if file.exists() else "no such file"
        raise ModelError(f"{file}: {wrong}: give a config.json, or a directory with one")
    model = model_from(read_json_object(file), str(path))
    return replace(model, name=display_name(path).removesuffix(".config"))


def model_from(config: Config, name: str) -> PaperModel:
    """The model that a configuration describes; `name` is what errors call it.

    Raises ModelError for an architecture that is not known, naming those that come near, and for a field that
    is missing or no sensible number.
    """
    architecture = _architecture(config, name)
    if architecture not in ARCHITECTURES:
        near = get_close_matches(architecture, ARCHITECTURES, NEAR_NAMES, 0.0)
        raise ModelError(
            f"{name}: architecture {shown(architecture)} is not known: give a model of {' or '.join(near)}"
        )
    model = ARCHITECTURES[architecture](text_part(config, name), name)
    return replace(model, not_counted=not_counted(config, name))


def _architecture(config: Config, name: str) -> str:
    declared = config.get("architectures")
    if isinstance(declared, list) and len(declared) == 1 and isinstance(declared[0], str):
        return declared[0]
    raise ModelError(f"{name}: architectures names no single model: give one, like LlamaForCausalLM")
