"""What an engine may refuse, each as one line that names the thing and the mend."""

__all__ = ["ConfigError", "EngineError", "ModelError", "WorkloadError"]


class EngineError(Exception):
    """Base of every refusal; its text is one line for the person at the terminal."""


class ConfigError(EngineError):
    """An engine option has a value that the engine cannot honour."""


class ModelError(EngineError):
    """A model is missing, damaged, or of a kind that the engine cannot run."""


class WorkloadError(EngineError):
    """A workload line is wrong or can never be served."""
