"""The tokenizer: one token per printable ASCII character, and six special tokens."""

from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, BOS, EOS, IMAGE, USER, ASSISTANT = (
    "<pad>", "<s>", "</s>", "<image>", "<user>", "<assistant>")
SPECIAL = (PAD, BOS, EOS, IMAGE, USER, ASSISTANT)
UNKNOWN = "<unk>"
CHARACTERS = tuple(chr(code) for code in range(32, 127))
VOCABULARY = (*SPECIAL, UNKNOWN, *CHARACTERS)
TOKEN_IDS = {token: index for index, token in enumerate(VOCABULARY)}

CHAT_TEMPLATE = (
    "{{- bos_token }}"
    "{%- for message in messages %}"
    "{{- '<assistant>' if message['role'] == 'assistant' else '<user>' }}"
    "{%- if message['content'] is string %}{{- message['content'] }}"
    "{%- else %}{%- for part in message['content'] %}"
    "{{- part['text'] if part['type'] == 'text' else '<image>' }}"
    "{%- endfor %}{%- endif %}"
    "{{- eos_token if message['role'] == 'assistant' }}"
    "{%- endfor %}"
    "{{- '<assistant>' if add_generation_prompt }}"
)


def encode(text: str) -> list[int]:
    """Token ids of plain text without special tokens in it."""
    return [TOKEN_IDS.get(character, TOKEN_IDS[UNKNOWN]) for character in text]


def save_tokenizer(folder: Path) -> None:
    """Write `tokenizer.json`, its config and the chat template into `folder`."""
    tokenizer = Tokenizer(models.WordLevel(TOKEN_IDS, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                  for t in (*SPECIAL, UNKNOWN)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, bos_token=BOS, eos_token=EOS,
        unk_token=UNKNOWN, extra_special_tokens=[IMAGE, USER, ASSISTANT],
        model_max_length=4096, clean_up_tokenization_spaces=False)
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)
