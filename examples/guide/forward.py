"""Prints the module that chapter 8 reads, with the names of arguments: python forward.py > forward.mlir (needs JAX)."""
import jax
import jax.numpy as jnp


def forward(params, x):
    return jnp.tanh(x @ params["w1"]) @ params["w2"]


shape = jax.ShapeDtypeStruct
params = {"w1": shape((8, 16), jnp.float32), "w2": shape((16, 8), jnp.float32)}
print(jax.jit(forward).lower(params, shape((256, 8), jnp.float32)).as_text(debug_info=True), end="")
