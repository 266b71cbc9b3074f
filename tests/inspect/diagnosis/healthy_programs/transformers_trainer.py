"""A training that is as it should be: the Trainer of transformers (it needs accelerate) with gradient checkpointing."""

import tempfile

import accelerate  # noqa: F401
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(33)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=32,
)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 64, (32, 16))]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=2,
        learning_rate=1e-3,
        warmup_steps=2,
        gradient_checkpointing=True,
        eval_strategy="epoch",
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    Trainer(LlamaForCausalLM(config), arguments, train_dataset=rows, eval_dataset=rows[:8]).train()
