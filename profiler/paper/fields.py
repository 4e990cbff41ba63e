"""What a configuration says beside sizes: counts that may be 0, kinds of layers, its text part."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import ModelError
from engine.fields import read_size, shown

__all__ = [
    "Config",
    "layer_kinds",
    "not_counted",
    "num_layers",
    "quant_method",
    "read_count",
    "text_part",
]

Config = Mapping[str, Any]

MOST_LAYERS = 4096


def read_count(config: Config, key: str, name: str, default: int = 0) -> int:
    """The whole number of at least 0 under `key`; `default` where it is left out or null."""
    value = config.get(key)
    if value is None:
        return default
    return 0 if value == 0 and not isinstance(value, bool) else read_size(config, key, name)


def num_layers(config: Config, name: str) -> int:
    """`num_hidden_layers`. ModelError beyond what any model has, as each is looked at by itself."""
    layers = read_size(config, "num_hidden_layers", name)
    if layers > MOST_LAYERS:
        raise ModelError(f"{name}: num_hidden_layers is {layers}: it must be at most {MOST_LAYERS}")
    return layers


def layer_kinds(config: Config, name: str, known: Sequence[str], default: Sequence[str]) -> Sequence[str]:
    """`layer_types`, one for each layer and each of `known`; `default` where it is left out."""
    kinds = config.get("layer_types")
    if kinds is None:
        return default
    if not isinstance(kinds, list) or len(kinds) != len(default):
        raise ModelError(
            f"{name}: layer_types must be a list with one kind for each of {len(default)} layers"
        )
    unknown = next((kind for kind in kinds if kind not in known), None)
    if unknown is not None:
        raise ModelError(
            f"{name}: layer_types holds {shown(unknown)}, which is not known: give {' or '.join(known)}"
        )
    return kinds


def text_part(config: Config, name: str) -> Config:
    """The configuration of the decoder, which models with other senses keep under `text_config`."""
    text = config.get("text_config")
    if text is None:
        return config
    if not isinstance(text, Mapping):
        raise ModelError(f"{name}: text_config is {shown(text)}: it must be an object")
    outer = {key: config[key] for key in ("tie_word_embeddings", "quantization_config") if key in config}
    return {**outer, **text}


def quant_method(config: Config, name: str) -> str | None:
    """How the checkpoint is quantised, by its own word; None where it is not."""
    quantization = config.get("quantization_config")
    if quantization is None:
        return None
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    if not isinstance(method, str):
        raise ModelError(f"{name}: quantization_config names no quant_method: give one, or leave it out")
    return method


def not_counted(config: Config, name: str) -> tuple[str, ...]:
    """Parts of a checkpoint that the decoder of text does not run, as words."""
    text = text_part(config, name)
    drafts = read_count(text, "num_nextn_predict_layers", name) or read_count(
        text, "mtp_num_hidden_layers", name
    )
    parts = [f"{drafts} draft layer{'' if drafts == 1 else 's'}"] if drafts else []
    senses = ("vision", "audio")
    return (*parts, *(f"the {sense} encoder" for sense in senses if config.get(f"{sense}_config")))
