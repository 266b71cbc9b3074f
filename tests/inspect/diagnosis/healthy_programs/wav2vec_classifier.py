"""A training that is as it should be: wav2vec classifier."""

import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification

torch.manual_seed(7)
config = Wav2Vec2Config(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    conv_dim=(8, 8),
    conv_stride=(5, 4),
    conv_kernel=(10, 8),
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=2,
    num_feat_extract_layers=2,
    classifier_proj_size=8,
    mask_time_prob=0.3,
    mask_time_length=2,
    layerdrop=0.0,
)
model = Wav2Vec2ForSequenceClassification(config).train()
model.freeze_feature_encoder()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for _ in range(4):
    optimizer.zero_grad()
    model(input_values=torch.randn(4, 400), labels=torch.randint(0, 2, (4,))).loss.backward()
    optimizer.step()
