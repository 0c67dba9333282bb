"""glyphocr: a small OCR model for vLLM, as a plugin outside vLLM's own tree."""


def register() -> None:
    """Entry point of `vllm.general_plugins`: vLLM calls it in every one of its processes.

    The model class is named, not imported, so that no process pays for what it does not use.
    """
    from transformers import AutoConfig
    from vllm import ModelRegistry

    from glyphocr.configuration import GlyphOCRConfig

    AutoConfig.register(GlyphOCRConfig.model_type, GlyphOCRConfig, exist_ok=True)
    ModelRegistry.register_model(
        "GlyphOCRForConditionalGeneration",
        "glyphocr.modeling:GlyphOCRForConditionalGeneration",
    )
