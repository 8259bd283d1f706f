"""The fused optimizers, for which old versions of PyTorch have kernels for CUDA alone. Each is one operation for a list of
parameters, and takes no memory beside them."""
from . import provided


def install(torch):
    def adam(decoupled):
        def kernel(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                   grad_scale=None, found_inf=None):
            if found_inf is not None and float(found_inf):
                return
            for at, (param, grad, mean, square, step) in enumerate(zip(params, grads, exp_avgs, exp_avg_sqs, state_steps)):
                if grad_scale is not None:
                    grad.div_(float(grad_scale))
                gradient = -grad if maximize else grad
                if weight_decay and decoupled:
                    param.mul_(1 - float(lr) * weight_decay)
                elif weight_decay:
                    gradient = gradient + param * weight_decay
                mean.mul_(beta1).add_(gradient, alpha=1 - beta1)
                square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
                if amsgrad:
                    torch.maximum(max_exp_avg_sqs[at], square, out=max_exp_avg_sqs[at])
                count = float(step)
                denominator = (max_exp_avg_sqs[at] if amsgrad else square).sqrt().div_((1 - beta2 ** count) ** 0.5).add_(eps)
                param.addcdiv_(mean, denominator, value=-float(lr) / (1 - beta1 ** count))

        return kernel

    def sgd(params, grads, momentum_buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale=None, found_inf=None):
        if found_inf is not None and float(found_inf):
            return
        for at, (param, grad) in enumerate(zip(params, grads)):
            if grad_scale is not None:
                grad.div_(float(grad_scale))
            gradient = -grad if maximize else grad
            if weight_decay:
                gradient = gradient + param * weight_decay
            if momentum:
                buffer = momentum_buffers[at]
                buffer.copy_(gradient) if is_first_step else buffer.mul_(momentum).add_(gradient, alpha=1 - dampening)
                gradient = gradient + buffer * momentum if nesterov else buffer
            param.add_(gradient, alpha=-float(lr))

    found = {}
    for name, kernel in (("_fused_adam_", adam(False)), ("_fused_adamw_", adam(True)), ("_fused_sgd_", sgd)):
        overloads = getattr(getattr(torch.ops.aten, name, None), "overloads", lambda: ())()
        for overload in overloads:
            if overload in ("default", "tensor_lr"):
                found[name if overload == "default" else name + "." + overload] = kernel
    provided.kernels(torch, found)
