"""Training steps of public models in JAX: GPT-2 and BERT (transformers), ResNet50 (keras), an LSTM (dm-haiku).

One function per model returns (step, arguments, schedules), at the real size (full) or small. `step(**arguments)`
returns a dict of the next parameters, the next optimizer state and the loss. `arguments` maps names to trees;
`schedules` maps names to specifications. Parameters are random; nothing is downloaded. Needs jax 0.10, flax, optax,
transformers (below 5), keras, dm-haiku.
"""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("KERAS_BACKEND", "jax")
import jax
import jax.numpy as jnp
import optax


def training_step(loss, optimizer):
    def step(params, state, batch):
        value, gradient = jax.value_and_grad(loss)(params, batch)
        update, state = optimizer.update(gradient, state, params)
        return {"params": optax.apply_updates(params, update), "state": state, "loss": value}

    return step


def schedules(batch, megatron):
    """Returns schedules: data parallelism, ZeRO-2 and ZeRO-3, and model parallelism if `megatron` names weights."""
    BP = f'BP: manual "B" {{{batch}}}\n'
    Z2 = 'Z2: manual "B" {params: replicated, state: first_divisible_dim}\n'
    # As in XLA's partitioner, gathered values are kept, and weights that are larger than the activations stay sharded.
    Z3 = 'Z3: manual "B" {params: first_divisible_dim, state: first_divisible_dim}; '
    Z3 += 'passes share_gathers, stationary_above 64 KiB\n'
    made = {"BP": BP, "BP+Z2": BP + Z2, "BP+Z3": BP + Z3}
    if megatron:
        MP = 'MP: manual "M" {' + ", ".join(f'"{k}": {dim}' for k, dim in megatron.items()) + "}\n"
        made |= {"BP+MP": BP + MP, "BP+MP+Z3": BP + MP + Z3}
    return made


def language_model(cls, config, batch, length, megatron):
    model = cls(config, input_shape=(1, 8), seed=0)
    optimizer = optax.adamw(1e-3)
    ids = jax.random.randint(jax.random.PRNGKey(1), (batch, length), 0, config.vocab_size, jnp.int32)

    def loss(params, batch):
        logits = model(batch, params=params, train=False).logits
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], batch[:, 1:]).mean()

    arguments = {"params": model.params, "state": optimizer.init(model.params), "batch": ids}
    return training_step(loss, optimizer), arguments, schedules("batch: 0", megatron)


def gpt2(full, batch=None, length=None):
    """One product computes queries, keys and values. Its columns are not grouped by heads: its weights stay global."""
    from transformers import FlaxGPT2LMHeadModel, GPT2Config
    small = GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=256, n_positions=64)
    layer = "params.transformer.h.*."
    megatron = {layer + "attn.c_proj.kernel": 1, layer + "mlp.c_fc.kernel": 0, layer + "mlp.c_proj.kernel": 1}
    return language_model(FlaxGPT2LMHeadModel, GPT2Config() if full else small, batch or (64 if full else 8),
                          length or (1024 if full else 16), megatron)


def bert(full, batch=None, length=None):
    from transformers import BertConfig, FlaxBertForMaskedLM
    small = BertConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=128,
                       vocab_size=256, max_position_embeddings=64)
    layer = "params.bert.encoder.layer.*."
    megatron = {layer + f"attention.self.{name}.kernel": 1 for name in ("query", "key", "value")}
    megatron |= {layer + "attention.output.dense.kernel": 0, layer + "intermediate.dense.kernel": 1,
                 layer + "output.dense.kernel": 0}
    return language_model(FlaxBertForMaskedLM, BertConfig() if full else small, batch or (64 if full else 8),
                          length or (512 if full else 16), megatron)


def resnet50(full, batch=None, length=None):
    import keras
    size, classes = (length or 224, 1000) if full else (length or 32, 16)
    batch = batch or (256 if full else 8)
    keras.utils.set_random_seed(0)
    model = keras.applications.ResNet50(weights=None, classes=classes, input_shape=(size, size, 3))
    trained = {v.path: v.value for v in model.trainable_variables}
    other = {v.path: v.value for v in model.non_trainable_variables}
    optimizer = optax.sgd(1e-2, momentum=0.9)

    def step(params, statistics, state, x, y):
        def loss(params):
            out, new = model.stateless_call([params[v.path] for v in model.trainable_variables],
                                            [statistics[v.path] for v in model.non_trainable_variables], x, training=True)
            picked = jnp.take_along_axis(out, y[:, None], 1)
            return -jnp.log(picked + 1e-7).mean(), new

        (value, new), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        update, state = optimizer.update(gradient, state, params)
        return {"params": optax.apply_updates(params, update), "state": state, "loss": value,
                "statistics": {v.path: n for v, n in zip(model.non_trainable_variables, new)}}

    key = jax.random.PRNGKey(1)
    arguments = {"params": trained, "statistics": other, "state": optimizer.init(trained),
                 "x": jax.random.normal(key, (batch, size, size, 3)),
                 "y": jax.random.randint(key, (batch,), 0, classes, jnp.int32)}
    return step, arguments, schedules("x: 0, y: 0", {})


def lstm(full, batch=None, length=None):
    """One product computes the gates. Its columns are not grouped by units, so its weights stay global."""
    import haiku as hk
    width, vocabulary = (1024, 32000) if full else (64, 128)
    batch, length = batch or (64 if full else 8), length or (128 if full else 12)

    def model(x):
        core = hk.LSTM(width)
        out, _ = hk.dynamic_unroll(core, hk.Embed(vocabulary, width)(x), core.initial_state(x.shape[1]))
        return hk.Linear(vocabulary)(out)

    f = hk.without_apply_rng(hk.transform(model))
    ids = jax.random.randint(jax.random.PRNGKey(1), (length, batch), 0, vocabulary, jnp.int32)
    params = f.init(jax.random.PRNGKey(0), ids)
    optimizer = optax.adam(1e-3)

    def loss(params, batch):
        return optax.softmax_cross_entropy_with_integer_labels(f.apply(params, batch)[:-1], batch[1:]).mean()

    arguments = {"params": params, "state": optimizer.init(params), "batch": ids}
    return training_step(loss, optimizer), arguments, schedules("batch: 1", {"params.linear.w": 1, "params.embed.embeddings": 1})


MODELS = {"gpt2": gpt2, "bert": bert, "resnet50": resnet50, "lstm": lstm}
