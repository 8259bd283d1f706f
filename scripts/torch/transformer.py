"""The Trainer of transformers with tiny networks, randomly initialised."""
import sys
import tempfile

from common import *
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments

if sys.argv[1] == "gpt2":
    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
else:
    model = BertForSequenceClassification(BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                                     intermediate_size=64, max_position_embeddings=32))
tokens = torch.randint(1, 100, (48, 16))


class Examples(torch.utils.data.Dataset):
    def __len__(self):
        return len(tokens)

    def __getitem__(self, at):
        return {"input_ids": tokens[at], "labels": tokens[at] if sys.argv[1] == "gpt2" else tokens[at].sum() % 2}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(output_dir=folder, num_train_epochs=2, per_device_train_batch_size=8, logging_steps=1, learning_rate=1e-3,
                                  save_strategy="no", report_to=[], disable_tqdm=True, seed=3)
    trainer = Trainer(model=model, args=arguments, train_dataset=Examples(), eval_dataset=Examples())
    trainer.remove_callback(PrinterCallback)  # it prints times
    trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            show("loss", entry["loss"])
            show("norm", entry["grad_norm"])
    show("evaluation", trainer.evaluate()["eval_loss"])
assert next(model.parameters()).device.type == device, next(model.parameters()).device
digest(model)
