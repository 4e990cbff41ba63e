"""Published model configurations are read, or refused by their architecture's name."""

import json
from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.shapes import ModelShape

CONFIGS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "configs"
PUBLISHED_PARAMS = {
    "HuggingFaceTB--SmolLM2-135M": 134_515_008,
    "meta-llama--Meta-Llama-3.1-8B": 8_030_261_248,
    "meta-llama--Meta-Llama-3.1-70B": 70_553_706_496,
}

pytestmark = pytest.mark.skipif(not CONFIGS.is_dir(), reason=f"no model configurations at {CONFIGS}")


@pytest.mark.parametrize("name", PUBLISHED_PARAMS)
def test_dense_llama_layouts_have_the_published_number_of_parameters(name: str) -> None:
    config = json.loads((CONFIGS / f"{name}.config.json").read_text())
    assert ModelShape.from_hf_config(config, name).num_params == PUBLISHED_PARAMS[name]


def test_others_are_refused_by_name() -> None:
    others = [p for p in CONFIGS.glob("*.config.json") if p.name.split(".config")[0] not in PUBLISHED_PARAMS]
    assert others
    for path in others:
        config = json.loads(path.read_text())
        with pytest.raises(ModelError, match=f"architecture '{config['architectures'][0]}' is not supported"):
            ModelShape.from_hf_config(config, path.name)
