"""A healthy plugin whose model takes whatever it is given, as models with a wrapper do."""

from glyphocr.modeling import GlyphOCRForConditionalGeneration
from vllm import ModelRegistry


class GlyphOCRWrapped(GlyphOCRForConditionalGeneration):
    """glyphocr behind a `forward` without names."""

    def forward(self, *inputs, **options):
        return super().forward(*inputs, **options)


def register() -> None:
    """Entry point of the plugin."""
    from glyphocr import register

    register()
    ModelRegistry.register_model("GlyphOCRForConditionalGeneration", GlyphOCRWrapped)
