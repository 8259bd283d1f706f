"""Networks of torchaudio: Wav2Letter on spectrograms with the CTC loss, and a Conformer."""
from common import *
import torchaudio

transform = torchaudio.transforms.MelSpectrogram(sample_rate=8000, n_fft=256, n_mels=24).to(device)
letters = torchaudio.models.Wav2Letter(num_classes=12, input_type="mfcc", num_features=24).to(device)
optimizer = torch.optim.Adam(letters.parameters(), lr=1e-4)
for step in range(3):
    sound, target = torch.randn(2, 16000).to(device), torch.randint(1, 12, (2, 5)).to(device)
    out = letters(transform(sound).clamp(min=1e-6).log()).permute(2, 0, 1)
    loss = torch.nn.functional.ctc_loss(out, target, torch.full((2,), out.size(0)), torch.full((2,), 5))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show("letters %d" % step, loss.item())
digest(letters)

conformer = torchaudio.models.Conformer(input_dim=24, num_heads=4, ffn_dim=48, num_layers=2, depthwise_conv_kernel_size=7).to(device)
optimizer = torch.optim.Adam(conformer.parameters(), lr=1e-3)
for step in range(3):
    x, lengths = torch.randn(3, 40, 24).to(device), torch.tensor([40, 30, 20]).to(device)
    out, _ = conformer(x, lengths)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show("conformer %d" % step, loss.item())
digest(conformer)
