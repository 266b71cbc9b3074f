import gradscope as gs
from gradscope import nn

gs.manual_seed(0)
student = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
teacher = student
optimizer = gs.optim.SGD(student.parameters(), lr=0.1)
for step in range(15):
    x = gs.randn(16, 10)
    with gs.no_grad():
        target = gs.softmax(teacher(x), -1)
    log_probs = gs.log_softmax(student(x), -1)
    loss = nn.functional.kl_div(log_probs, target, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
