"""FuxiCTR's recipe for its benchmark criteo_x1, in Renzan's configuration and in FuxiCTR's: what
both sides of bench/models train is stated here and nowhere else."""

EMBEDDING_DIM = 10
LAYERS = [400, 400, 400]
LEARNING_RATE = 1e-3
MAX_GRADIENT_NORM = 10.0  # FuxiCTR's BaseModel.fit
# After an epoch whose AUC is not higher by MIN_DELTA, the rate is a tenth, but at least 1e-6. Two
# such in a row end the training.
EPOCHS, PATIENCE, MIN_DELTA, RATE_DECAY, MIN_RATE_FACTOR = 30, 2, 1e-6, 0.1, 1e-3
L2 = 1e-5  # of embeddings
# What `model` says for batch normalization in the MLPs of these, whose references have it.
BATCH_NORM = {"normalization": "batch"}
NORMALIZED = ("wide_deep", "deepfm", "xdeepfm", "autoint", "finalmlp", "dlrm", "din", "bst")
SPARSE = {"type": "adam", "rows": "all", "learning_rate": LEARNING_RATE}
INITIAL_VALUES = {"initial_values": "normal", "initial_deviation": 1e-4}

# What the tables of results say of it.
RECIPE = [
    "All features are categorical, numbers in buckets, so dlrm has no bottom MLP.",
    f"Adam {LEARNING_RATE}, embedding_dim {EMBEDDING_DIM}, MLP {LAYERS}, gradients clipped to "
    f"{MAX_GRADIENT_NORM:g}; a tenth of the learning rate after each epoch without a better AUC on "
    f"the validation data, an end after {PATIENCE} in a row; the best epoch counts.",
    f"Batch normalization in {', '.join(NORMALIZED)}: FuxiCTR's statistics are those of the batch, "
    "Renzan's those of a virtual worker's share of it, an eighth.",
    "Tables begin as N(0, 1e-4). Their Adam moves all rows at every step, and so does L2 of tables; "
    "in FuxiCTR it is a term of the loss, which is part of the gradients that are clipped.",
    "din and bst run where the data have sequences, the others where they have none. FuxiCTR's bst "
    "puts an embedding of its position beside each item, Renzan's adds it.",
]


def models_of(data, models):
    """Those that the data are for."""
    return [model for model in models if (model in SEQUENCE_FIELDS) == bool(data["sequences"])]


def mlps(*names):
    return {name: LAYERS for name in names}


DEEP = {"top_mlp": LAYERS}
# Of each model: its options in Renzan; its folder in FuxiCTR's model_zoo, class and options there.
MODELS = {
    "lr": ({}, "LR", "LR", {}),
    "fm": ({}, "FM", "FM", {}),
    "wide_deep": (DEEP, "WideDeep/WideDeep_torch", "WideDeep", mlps("hidden_units")),
    "deepfm": (DEEP, "DeepFM/DeepFM_torch", "DeepFM", mlps("hidden_units")),
    "xdeepfm": ({**DEEP, "cin_layers": [16, 16]}, "xDeepFM", "xDeepFM",
                {**mlps("dnn_hidden_units"), "cin_hidden_units": [16, 16]}),
    "dcn": ({**DEEP, "cross_layers": 3}, "DCN/DCN_torch", "DCN",
            {**mlps("dnn_hidden_units"), "num_cross_layers": 3}),
    "dcnv2": ({**DEEP, "cross_layers": 3, "cross_rank": 0}, "DCNv2", "DCNv2",
              {**mlps("parallel_dnn_hidden_units"), "model_structure": "parallel",
               "num_cross_layers": 3}),
    "autoint": ({**DEEP, "attention_layers": 3, "attention_heads": 2, "attention_dim": 20},
                "AutoInt", "AutoInt",
                # Renzan counts the dimension of a head, FuxiCTR that of all.
                {**mlps("dnn_hidden_units"), "attention_layers": 3, "num_heads": 2,
                 "attention_dim": 40, "use_scale": True, "use_wide": True}),
    # Its reference has normalization by layers, not by batches.
    "masknet": ({**DEEP, "mask_blocks": 3, "mask_ratio": 1, "mask_width": 64},
                "MaskNet", "MaskNet",
                {**mlps("dnn_hidden_units"), "model_type": "ParallelMaskNet",
                 "parallel_num_blocks": 3, "reduction_ratio": 1, "parallel_block_dim": 64}),
    # Without the gates before its MLPs, which Renzan's does not have.
    "finalmlp": (DEEP, "FinalMLP", "FinalMLP",
                 {**mlps("mlp1_hidden_units", "mlp2_hidden_units"), "use_fs": False}),
    "dlrm": (DEEP, "DLRM", "DLRM", mlps("top_mlp_units")),
    "din": ({**DEEP, "attention_mlp": [64]}, "DIN", "DIN",
            {**mlps("dnn_hidden_units"), "attention_hidden_units": [64],
             "attention_hidden_activations": "Sigmoid"}),
    "bst": ({**DEEP, "attention_heads": 2}, "BST", "BST",
            {**mlps("dnn_hidden_units"), "num_heads": 2}),
}
# Of models that take sequences, what FuxiCTR calls a sequence and what it is compared with.
SEQUENCE_FIELDS = {"din": ("din_sequence_field", "din_target_field"),
                   "bst": ("bst_sequence_field", "bst_target_field")}
# Their only regularizer is that of embeddings and of everything else.
ONE_REGULARIZER = ("lr", "fm")


def renzan_config(model, data, seed, epochs, l2, threads):
    options = dict(MODELS[model][0])
    if model != "lr":
        options["embedding_dim"] = EMBEDDING_DIM
    if model in NORMALIZED:
        options |= BATCH_NORM
    steps = data["train"]["rows"] // data["batch"]
    return {
        "seed": seed,
        "data": {"train": {"path": data["train"]["path"]}, "eval": {"path": data["valid"]["path"]}},
        "model": {"type": model, **options, **INITIAL_VALUES},
        "training": {"batch_size": data["batch"], "epochs": epochs, "eval_every_epochs": 1,
                     "keep_best": True, "log_every": max(1, steps // 5),
                     "early_stopping": {"metric": "auc", "patience": PATIENCE,
                                        "min_delta": MIN_DELTA}},
        "optimizer": {
            "dense": {"type": "adam", "learning_rate": LEARNING_RATE},
            "sparse": {**SPARSE, "weight_decay": l2, "weight_decay_mode": "l2"},
            "schedule": {"plateau": {"metric": "auc", "patience": 1, "min_delta": MIN_DELTA,
                                     "factor": RATE_DECAY, "floor": MIN_RATE_FACTOR}},
            "max_gradient_norm": MAX_GRADIENT_NORM},
        "checkpoint": {"every": "0"},
        "threads": threads,
    }


def fuxictr_request(model, data, seed, epochs, l2, threads):
    """What bench/models_fuxictr.py reads."""
    _, folder, name, options = MODELS[model]
    options = dict(options)
    if model in NORMALIZED:
        keys = ("mlp1_batch_norm", "mlp2_batch_norm") if model == "finalmlp" else ("batch_norm",)
        options |= dict.fromkeys(keys, True)
    if model != "lr":
        options["embedding_dim"] = EMBEDDING_DIM
    if model in SEQUENCE_FIELDS:
        fields = list(zip(*((name, one["table"]) for name, one in data["sequences"].items())))
        options |= {key: list(field) for key, field in zip(SEQUENCE_FIELDS[model], fields)}
    options["regularizer" if model in ONE_REGULARIZER else "embedding_regularizer"] = l2
    return {
        "folder": folder, "class": name, "data": data, "batch": data["batch"], "seed": seed,
        "epochs": epochs, "threads": threads, "max_gradient_norm": MAX_GRADIENT_NORM,
        "options": {**options, "learning_rate": LEARNING_RATE, "optimizer": "adam",
                    "loss": "binary_crossentropy", "monitor": "AUC", "monitor_mode": "max",
                    "early_stop_patience": PATIENCE, "reduce_lr_on_plateau": True,
                    "metrics": ["AUC", "logloss"], "task": "binary_classification", "verbose": 0,
                    "gpu": -1},
    }
