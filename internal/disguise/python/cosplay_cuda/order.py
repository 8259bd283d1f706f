"""The order in which autograd adds up the gradients of a tensor. It decides about the last bits of the sum, so what runs as one
operation hands over the gradients of its parts one by one wherever a tensor also gets others."""
import functools
import threading

from .devices import script_as


class Local(threading.local):
    roots = None  # where the backward pass that runs starts
    sources = None  # how many operations each gradient of it comes from
    hooks = 0  # how many pairs of hooks for saved tensors the program has pushed


class Order:
    def __init__(self, torch):
        self.local, self.grad = Local(), torch.autograd.grad
        for name in "backward", "grad":
            original = getattr(torch.autograd, name)
            setattr(torch.autograd, name, self.starting(original))
            script_as(torch, original, getattr(torch.autograd, name), name)
        holder = torch._C._autograd
        for name, change in (("_push_saved_tensors_default_hooks", 1), ("_pop_saved_tensors_default_hooks", -1)):
            setattr(holder, name, self.counting(getattr(holder, name), change))

    def starting(self, function):
        local = self.local

        @functools.wraps(function)
        def run(tensors, *args, **kwargs):
            before = local.roots, local.sources
            several = isinstance(tensors, (list, tuple)) and not hasattr(tensors, "node")  # which a GradientEdge has
            local.roots, local.sources = tensors if several else (tensors,), None
            try:
                return function(tensors, *args, **kwargs)
            finally:
                local.roots, local.sources = before

        return run

    def counting(self, function, change):
        @functools.wraps(function)
        def run(*args):
            result = function(*args)
            self.local.hooks += change
            return result

        return run

    def shared(self, node, places):
        """Those of a node's operands that also get gradients from other operations in this backward pass."""
        local = self.local
        if local.roots is None:
            return places  # started from C++ code, so all may
        if local.sources is None:
            local.sources = sources_from(local.roots)
        edges = node.next_functions
        return [place for place in places if local.sources.get(edges[place], 0) > 1]

    def parts(self, outputs, leaves):
        """Lists that fill, during the next backward pass from outputs, with the gradients that leaves get, in their order."""
        found = {id(leaf): [] for leaf in leaves}
        handles, seen, todo = [], set(), [tensor.grad_fn for tensor in outputs]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            wanted = []
            for at, (follower, _) in enumerate(node.next_functions):
                if follower is None:
                    continue
                parts = found.get(id(getattr(follower, "variable", None)))
                if parts is not None:
                    wanted.append((at, parts))
                todo.append(follower)
            if wanted:
                handles.append(node.register_hook(functools.partial(keep, wanted)))
        return [found[id(leaf)] for leaf in leaves], handles


def keep(wanted, gradients, _):
    for at, parts in wanted:
        if gradients[at] is not None:
            parts.append(gradients[at])


def sources_from(roots):
    """The number of operations that lead to each (node, place) of a graph."""
    found, seen = {}, set()
    todo = []
    for root in roots:
        node = getattr(root, "grad_fn", None) or getattr(root, "node", None)  # of a tensor, or of a GradientEdge
        if node is not None:
            edge = node, root.output_nr
            found[edge] = found.get(edge, 0) + 1
            todo.append(node)
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for edge in set(node.next_functions):
            if edge[0] is not None:
                found[edge] = found.get(edge, 0) + 1
                todo.append(edge[0])
    return found
