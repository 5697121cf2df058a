/* Renzan's C interface: librenzan.so. C99 and later.
 *
 * Functions that can fail return a renzan_status; renzan_last_error() then says what failed, where,
 * and what to do next. Objects are opaque handles, created and destroyed in pairs; destroying NULL
 * does nothing. Unless said otherwise an object may be used by one thread at a time, any functions
 * may run concurrently on different objects, and buffers need no alignment.
 *
 * The library changes nothing in its process beyond what is said here: no signal handlers, no
 * signal dispositions (SIGPIPE is blocked in the calling thread during a call), no exit, no
 * environment. Backend mpi initialises MPI if the process has not, and ends it when the
 * communicator is destroyed only if it was the one to initialise it. Warnings go to stderr.
 */
#ifndef RENZAN_CAPI_RENZAN_H_
#define RENZAN_CAPI_RENZAN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RENZAN_EXPORT __attribute__((visibility("default")))
#else
#define RENZAN_EXPORT
#endif

/* ---- Errors and versions ---- */

/* The exit statuses of sysexits.h, with which a program may exit when it cannot continue: a
 * launcher that knows them restarts it only where that may help. */
typedef enum renzan_status {
  RENZAN_OK = 0,
  RENZAN_USAGE = 64,       /* a wrong argument; workers that disagree */
  RENZAN_DATA = 65,        /* a damaged file */
  RENZAN_NO_INPUT = 66,    /* a file does not exist or cannot be read */
  RENZAN_UNAVAILABLE = 69, /* a peer died or did not answer */
  RENZAN_SOFTWARE = 70,    /* a bug */
  RENZAN_OS_ERROR = 71,    /* out of memory or threads */
  RENZAN_CANT_CREATE = 73, /* an output cannot be created */
  RENZAN_IO = 74,          /* reading or writing failed */
  RENZAN_STOPPED = 75,     /* stopped on request: run it again */
  RENZAN_NO_PERMISSION = 77,
  RENZAN_CONFIG = 78 /* a wrong configuration */
} renzan_status;

/* The message of this thread's last failed call; valid until another one fails. Never NULL. */
RENZAN_EXPORT const char* renzan_last_error(void);

/* "0.1.0" */
RENZAN_EXPORT const char* renzan_version(void);

/* ---- Workers ---- */

/* This worker's place, from the variables that launchers set: torchrun's (RANK, WORLD_SIZE,
 * LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI's or Slurm's. Without any: one worker. */
typedef struct renzan_place {
  int rank, world_size, local_rank;
  int under_mpirun; /* 1: mpirun started it */
  int master_port;
  char master_addr[256]; /* "": unknown */
} renzan_place;

RENZAN_EXPORT renzan_status renzan_place_from_environment(renzan_place* place);

/* Which virtual workers [*begin, *end) of `virtual_workers` a worker computes: contiguous, for any
 * world size from 1 to virtual_workers. */
RENZAN_EXPORT renzan_status renzan_virtual_worker_range(int virtual_workers, int world_size,
                                                        int rank, int* begin, int* end);

/* ---- Communicators ---- */

/* A group of workers. Every worker makes the same calls in the same order; where they do not, each
 * of them gets RENZAN_USAGE with what the others call. A worker that dies or does not answer within
 * the time limit is RENZAN_UNAVAILABLE, which names it; the communicator can then only be
 * destroyed. Calls may come from several threads; one at a time is carried out. */
typedef struct renzan_comm renzan_comm;

/* `backend`: "local" (one worker), "gloo" (TCP), "mpi" (the workers of one mpirun; needs the
 * system's Open MPI), or "auto": local for one worker, mpi under mpirun, else gloo. Worker 0
 * listens at master_addr:master_port until all have connected. `timeout_seconds` limits that and
 * each call. `threads` (1 or more) share the work of reductions; their number changes no bit. */
RENZAN_EXPORT renzan_status renzan_comm_create(const renzan_place* place, const char* backend,
                                               double timeout_seconds, int threads,
                                               renzan_comm** comm);
RENZAN_EXPORT void renzan_comm_destroy(renzan_comm* comm);

RENZAN_EXPORT int renzan_comm_rank(const renzan_comm* comm);
RENZAN_EXPORT int renzan_comm_world_size(const renzan_comm* comm);
RENZAN_EXPORT const char* renzan_comm_backend(const renzan_comm* comm);

RENZAN_EXPORT renzan_status renzan_barrier(renzan_comm* comm);
/* A barrier at which all workers begin the same training step. Starting a reduction does not check
 * that the others start it too, so call this before the reductions of a step. */
RENZAN_EXPORT renzan_status renzan_begin_step(renzan_comm* comm, uint64_t step);
/* `bytes` of `data` from worker `root` to all. */
RENZAN_EXPORT renzan_status renzan_broadcast(renzan_comm* comm, void* data, size_t bytes, int root);
/* `send` goes to every worker; recv[p] is filled with the recv_bytes[p] that worker p sends. */
RENZAN_EXPORT renzan_status renzan_all_gather(renzan_comm* comm, const void* send,
                                              size_t send_bytes, void* const* recv,
                                              const size_t* recv_bytes);
/* send[p] goes to worker p, recv[p] comes from it. */
RENZAN_EXPORT renzan_status renzan_all_to_all(renzan_comm* comm, const void* const* send,
                                              const size_t* send_bytes, void* const* recv,
                                              const size_t* recv_bytes);

typedef enum renzan_dtype {
  RENZAN_FLOAT32 = 0,
  RENZAN_FLOAT64 = 1,
  RENZAN_FLOAT16 = 2,
  RENZAN_BFLOAT16 = 3,
  RENZAN_INT8 = 4,
  RENZAN_UINT8 = 5,
  RENZAN_INT16 = 6,
  RENZAN_INT32 = 7,
  RENZAN_INT64 = 8
} renzan_dtype;

typedef enum renzan_op {
  RENZAN_SUM = 0,
  RENZAN_PRODUCT = 1,
  RENZAN_MIN = 2,
  RENZAN_MAX = 3,
  RENZAN_BIT_AND = 4, /* the bitwise ones: integers only */
  RENZAN_BIT_OR = 5,
  RENZAN_BIT_XOR = 6
} renzan_op;

/* One array per worker, combined in the order of a fixed balanced binary tree over the ranks.
 * `send` and `recv` may be the same; otherwise they must not overlap. 16-bit floats are combined in
 * float32 and rounded at each node; integers wrap around. */
RENZAN_EXPORT renzan_status renzan_all_reduce(renzan_comm* comm, const void* send, void* recv,
                                              size_t count, renzan_dtype dtype, renzan_op op);
/* The same, but worker p receives only counts[p] elements, which follow those of the workers before
 * it. `send` holds all of them. */
RENZAN_EXPORT renzan_status renzan_reduce_scatter(renzan_comm* comm, const void* send, void* recv,
                                                  const size_t* counts, renzan_dtype dtype,
                                                  renzan_op op);

/* ---- 16-bit codecs ---- */

/* `count` values as `type`, RENZAN_FLOAT16 or RENZAN_BFLOAT16, 2 bytes each, little-endian: rounded
 * to nearest, ties to even, as reductions round what they send. A finite value beyond the type's
 * range becomes its largest. */
RENZAN_EXPORT renzan_status renzan_encode(const float* values, size_t count, renzan_dtype type,
                                          void* encoded);
RENZAN_EXPORT renzan_status renzan_decode(const void* encoded, size_t count, renzan_dtype type,
                                          float* values);

/* ---- Sums over virtual workers ---- */

/* The sum of one array per virtual worker, in the order of a fixed balanced binary tree: the same
 * bits whatever the number of workers. A worker adds the arrays of its virtual workers one after
 * another, in their order; it holds about log2 of their number. Then the workers exchange.
 *
 *   for v in renzan_virtual_worker_range(...): renzan_reduction_add(...)
 *   renzan_reduction_start()      posts the exchange and returns
 *   renzan_reduction_continue()   waits for the half that scatters, and adds
 *   renzan_reduction_finish()     waits for the half that gathers, and gives the sum
 *
 * Several reductions may be in flight; all workers start, continue and finish them in the same
 * order, which is not checked (renzan_begin_step). The communicator must outlive them. */
typedef struct renzan_reduction renzan_reduction;

/* An array, or the sum, may lie in several places. */
typedef struct renzan_part {
  void* data;         /* NULL where it is added: zeros */
  size_t count;       /* elements */
  renzan_dtype dtype; /* sums of float32: float32, float16 or bfloat16; of float64: float64 */
} renzan_part;

/* `count` elements of `dtype`, RENZAN_FLOAT32 or RENZAN_FLOAT64. `wire`: the type to which every
 * array and every partial sum is rounded, and which is sent: `dtype` itself, or for float32 also
 * RENZAN_FLOAT16 (beyond its range: the largest value) or RENZAN_BFLOAT16. `name` appears
 * in error messages. Workers check here that they agree. */
RENZAN_EXPORT renzan_status renzan_reduction_create(renzan_comm* comm, int virtual_workers,
                                                    size_t count, renzan_dtype dtype,
                                                    renzan_dtype wire, const char* name,
                                                    renzan_reduction** reduction);
RENZAN_EXPORT void renzan_reduction_destroy(renzan_reduction* reduction);

RENZAN_EXPORT renzan_status renzan_reduction_add(renzan_reduction* reduction,
                                                 const renzan_part* parts, size_t num_parts);
RENZAN_EXPORT renzan_status renzan_reduction_start(renzan_reduction* reduction);
RENZAN_EXPORT renzan_status renzan_reduction_continue(renzan_reduction* reduction);
/* Writes the sum times `scale`. `all_finite` may be NULL. */
RENZAN_EXPORT renzan_status renzan_reduction_finish(renzan_reduction* reduction,
                                                    const renzan_part* parts, size_t num_parts,
                                                    double scale, int* all_finite);
/* Discards what has been added since the last sum, if no exchange has been started. */
RENZAN_EXPORT renzan_status renzan_reduction_reset(renzan_reduction* reduction);
/* The number of arrays of `count` elements that it holds. */
RENZAN_EXPORT size_t renzan_reduction_num_arrays(const renzan_reduction* reduction);

/* ---- Randomness and order, keyed by meaning ---- */

/* A key for one purpose, derived from a seed; stable across versions. */
RENZAN_EXPORT uint64_t renzan_key(uint64_t seed, const char* meaning, uint64_t index);
/* Philox4x32-10 (Salmon et al., SC 2011): words out[0..4) of a key and a 128-bit counter. */
RENZAN_EXPORT void renzan_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high,
                                 uint32_t out[4]);
/* The samples at positions [begin, end) of an epoch over `num_samples`: a keyed permutation of all
 * of them, computed on the fly. out: [end - begin]. */
RENZAN_EXPORT renzan_status renzan_sample_order(uint64_t seed, int64_t epoch, int64_t num_samples,
                                                int64_t begin, int64_t end, int64_t* out);

/* ---- Checkpoints ---- */

/* A checkpoint is a directory with safetensors files and a manifest that has a checksum of each
 * (docs/formats/checkpoint.md); those of a run lie in one directory: step-00000100 and so on. */

/* An array, row-major and little-endian. */
typedef struct renzan_tensor {
  const char* key;   /* UTF-8 */
  const char* dtype; /* as safetensors spells it: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL */
  const int64_t* shape;
  size_t dims;
  const void* data; /* NULL where it is described, not given */
  size_t bytes;
} renzan_tensor;

typedef struct renzan_text {
  const char* key;
  const char* value;
} renzan_text;

/* A directory of checkpoints, for the one process that writes there; any process may read. */
typedef struct renzan_checkpoints renzan_checkpoints;

/* Creates the directory if it does not exist, waits a few seconds for another process that writes
 * there (then RENZAN_CANT_CREATE, which names it), and removes what a killed writer left behind.
 *
 * With RENZAN_JOB_ID and RENZAN_ATTEMPT in the environment, an earlier attempt of the same job that
 * still writes there is asked to stop, and waited for, up to ten minutes (then RENZAN_STOPPED);
 * if a later attempt asks, this process sends SIGTERM to itself. */
RENZAN_EXPORT renzan_status renzan_checkpoints_open(const char* directory,
                                                    renzan_checkpoints** checkpoints);
RENZAN_EXPORT void renzan_checkpoints_close(renzan_checkpoints* checkpoints);

/* Writes a checkpoint, which appears whole or not at all, and is durable on return. An existing one
 * of the same step is moved aside. `run`: texts that readers may use; `config`: YAML. `hash`: also
 * computes the SHA-256 of every tensor, several times slower; `model_sha256` (may be NULL) is then
 * the digest of all of them, else "". */
RENZAN_EXPORT renzan_status renzan_checkpoints_write(renzan_checkpoints* checkpoints, int64_t step,
                                                     const renzan_tensor* tensors,
                                                     size_t num_tensors, const renzan_text* run,
                                                     size_t num_run, const char* config, int hash,
                                                     char model_sha256[65]);
/* Removes all valid ones but the `keep` newest. Keeps damaged ones; removes nothing while one
 * cannot be read. */
RENZAN_EXPORT renzan_status renzan_checkpoints_remove_old(renzan_checkpoints* checkpoints,
                                                          int keep);
/* Renames one that cannot be used to <name>.corrupt, or .corrupt-2 and so on. */
RENZAN_EXPORT renzan_status renzan_checkpoints_move_aside(renzan_checkpoints* checkpoints,
                                                          int64_t step);

/* What is in a directory of checkpoints, newest first; one that does not exist is empty. */
typedef struct renzan_checkpoint_list renzan_checkpoint_list;

typedef struct renzan_checkpoint_entry {
  const char* name;
  const char* path;
  int64_t step;
  int64_t unix_ms; /* when it was written */
  uint64_t bytes;
  /* RENZAN_DATA: damaged. RENZAN_NO_INPUT, RENZAN_IO: it cannot be read now, and may be valid.
   * RENZAN_OK: its manifest is valid and its files have the right sizes. */
  renzan_status status;
  const char* problem; /* "": none */
} renzan_checkpoint_entry;

RENZAN_EXPORT renzan_status renzan_checkpoint_list_create(const char* directory,
                                                          renzan_checkpoint_list** list);
RENZAN_EXPORT void renzan_checkpoint_list_destroy(renzan_checkpoint_list* list);
RENZAN_EXPORT size_t renzan_checkpoint_list_size(const renzan_checkpoint_list* list);
/* Valid as long as the list. */
RENZAN_EXPORT renzan_status renzan_checkpoint_list_get(const renzan_checkpoint_list* list,
                                                       size_t index,
                                                       renzan_checkpoint_entry* entry);

/* An open checkpoint, or saved model. An incremental one is read together with its base. */
typedef struct renzan_checkpoint renzan_checkpoint;

/* `path` is a checkpoint, or a directory of them: then the newest whose manifest and sizes are
 * valid. What it returns below is valid until it is closed. */
RENZAN_EXPORT renzan_status renzan_checkpoint_open(const char* path,
                                                   renzan_checkpoint** checkpoint);
RENZAN_EXPORT void renzan_checkpoint_close(renzan_checkpoint* checkpoint);

RENZAN_EXPORT const char* renzan_checkpoint_path(const renzan_checkpoint* checkpoint);
RENZAN_EXPORT int64_t renzan_checkpoint_step(const renzan_checkpoint* checkpoint);
/* "" if the tensors were not hashed. */
RENZAN_EXPORT const char* renzan_checkpoint_model_sha256(const renzan_checkpoint* checkpoint);
RENZAN_EXPORT const char* renzan_checkpoint_config(const renzan_checkpoint* checkpoint);
RENZAN_EXPORT size_t renzan_checkpoint_num_run(const renzan_checkpoint* checkpoint);
RENZAN_EXPORT renzan_status renzan_checkpoint_run(const renzan_checkpoint* checkpoint, size_t index,
                                                  renzan_text* text);
RENZAN_EXPORT size_t renzan_checkpoint_num_tensors(const renzan_checkpoint* checkpoint);
/* In the order of their keys. */
RENZAN_EXPORT renzan_status renzan_checkpoint_tensor(const renzan_checkpoint* checkpoint,
                                                     size_t index, renzan_tensor* tensor);
/* The values of a tensor, which has `bytes` bytes. The checksum of a file is verified when it is
 * first used. */
RENZAN_EXPORT renzan_status renzan_checkpoint_read(renzan_checkpoint* checkpoint, const char* key,
                                                   void* out, size_t bytes);
/* Verifies every file and tensor. */
RENZAN_EXPORT renzan_status renzan_checkpoint_verify(renzan_checkpoint* checkpoint);

/* The model_sha256 of a checkpoint of `step` with these tensors. */
RENZAN_EXPORT renzan_status renzan_model_sha256(int64_t step, const renzan_tensor* tensors,
                                                size_t num_tensors, char model_sha256[65]);

/* ---- Status of a run ---- */

/* What a running program tells a scheduler (docs/cluster.md): status.json in its run directory. */
typedef struct renzan_run_status {
  const char* state;         /* starting, running, stopping, stopped, done or failed */
  int64_t step, steps;       /* finished, in total */
  double samples_per_second; /* 0: unknown */
  double eta_seconds;        /* negative: unknown */
  int64_t checkpoint_step;   /* negative: none yet */
  double checkpoint_unix_seconds;
  double working_since_unix_seconds; /* the first step of this process began; 0: not yet */
} renzan_run_status;

/* Replaces `path` atomically. */
RENZAN_EXPORT renzan_status renzan_write_run_status(const char* path,
                                                    const renzan_run_status* status);

/* ---- Datasets ---- */

/* A directory that `renzan data import` or `renzan data synth` has made (docs/formats/dataset.md),
 * mapped read-only. Any threads may use it at the same time. */
typedef struct renzan_dataset renzan_dataset;

/* Checks that each file has the size, type and shape that dataset.yaml says. `verify_blocks`: 1
 * compares each block of 64 KiB with its checksum when it is first read. */
RENZAN_EXPORT renzan_status renzan_dataset_open(const char* directory, int verify_blocks,
                                                renzan_dataset** dataset);
RENZAN_EXPORT void renzan_dataset_close(renzan_dataset* dataset);

/* Describes it as JSON, valid as long as the dataset; arrays lie in `shards`[i].directory:
 *   {"directory": "clicks", "rows": 7, "fingerprint": "SHA-256: same samples, same meaning",
 *    "label": "click" (null: the rows have no labels), "label_rule": "",
 *    "labels": [{"name": "click", "rule": "", "optional": false},      the first is `label`
 *               {"name": "buy", "rule": "values no/yes", "optional": true}],
 *    "weight": null (samples have no weights), "negatives_kept": 1.0,
 *    "dense": ["I1", "text.0", "text.1"], "dense_transforms": ["log", "none", "none"],
 *    "vectors": {"text": {"first": 1, "dimension": 2}},       those of `dense` that one column gave
 *    "categorical": [
 *      {"name": "C1", "num_embeddings": 9, "multi_hot": false, "vocabulary": "hash:9",
 *       "table": "C1", "max_length": 0,                       max_length above 0: a sequence
 *       "file": "ids.npy", "column": 0},                      column null: a file of its own
 *      {"name": "genres", "num_embeddings": 9, "multi_hot": true, "vocabulary": "ids",
 *       "table": "genres", "max_length": 0,
 *       "values": "genres.values.npy", "offsets": "genres.offsets.npy",
 *       "weights": null},          or {"name": "relevance", "file": "genres.weights.npy"}
 *    ],
 *    "generated": {"best_auc": 0.8, "best_log_loss": 0.4},    null for imported data
 *    "shards": [{"directory": "clicks/shard-00000", "rows": 7}]} */
RENZAN_EXPORT const char* renzan_dataset_description(const renzan_dataset* dataset);

/* Compares every file with its SHA-256. */
RENZAN_EXPORT renzan_status renzan_dataset_verify(const renzan_dataset* dataset);

/* Some rows of a dataset, in columns. */
typedef struct renzan_batch renzan_batch;

/* Gathers rows in any order, also repeatedly. On RENZAN_DATA, renzan_last_error() names the file of
 * a corrupt block, or the row, feature and value of an id outside its table, a label that its
 * rule does not allow (0 and 1, or numbers), or a dense value that is not finite. */
RENZAN_EXPORT renzan_status renzan_dataset_read(const renzan_dataset* dataset, const int64_t* rows,
                                                size_t num_rows, renzan_batch** batch);
RENZAN_EXPORT void renzan_batch_destroy(renzan_batch* batch);

/* [rows], of the first label: 0 or 1, or numbers, or NaN where the row lacks an optional one; NULL
 * if the rows have no labels */
RENZAN_EXPORT const float* renzan_batch_label(const renzan_batch* batch);
/* [labels, rows]: the same of all labels, one after the other, in the order of `labels` */
RENZAN_EXPORT const float* renzan_batch_labels(const renzan_batch* batch);
/* [rows], finite and not negative; NULL if samples have no weights, and of no rows. */
RENZAN_EXPORT const float* renzan_batch_weight(const renzan_batch* batch);
/* [rows, dense features] */
RENZAN_EXPORT const float* renzan_batch_dense(const renzan_batch* batch);
/* Of the feature with this position in `categorical`. One-hot: *values [rows], *offsets NULL.
 * Multi-hot: row i owns (*values)[offsets[i] .. offsets[i + 1]), *offsets [rows + 1]. */
RENZAN_EXPORT renzan_status renzan_batch_ids(const renzan_batch* batch, size_t feature,
                                             const int64_t** values, size_t* num_values,
                                             const int32_t** offsets);
/* Of the values of such a feature: [number of values], finite. *weights NULL: they have none, or
 * there are no values. */
RENZAN_EXPORT renzan_status renzan_batch_bag_weights(const renzan_batch* batch, size_t feature,
                                                     const float** weights);

/* How a table becomes a dataset: what the flags of `renzan data import` say. Zeros are the
 * defaults.
 */
typedef struct renzan_import_options {
  const char* const* vocabulary; /* "hash:100000", "user=threshold:8" */
  size_t num_vocabulary;
  const char* const* unseen; /* "0.01", "user=0.05" */
  size_t num_unseen;
  const char* vocabulary_from;  /* a dataset; NULL: none */
  const double* keep_negatives; /* NULL: all */
  const uint64_t* seed;         /* NULL: 0 */
  int grow;
  int skip_bad_rows; /* 0: a bad row is an error */
  int64_t shard_rows;
  /* Called every few thousand rows, in the calling thread; returns 0, or 1 to stop. May be NULL. */
  int (*progress)(void* context, int64_t rows);
  void* context;
  const char* split; /* "random:0.1"; NULL: none. Otherwise the datasets are in `directory`: train
                        and test. Each appears whole or not at all, test first: where train is, so
                        is test */
} renzan_import_options;

typedef struct renzan_import_result {
  int64_t rows;          /* of the dataset; with split, of the training set */
  int64_t positive_rows; /* of these, with 1 as the first label; -1: it is a number */
  int64_t bad_rows;      /* skipped */
  int64_t dropped_rows;  /* left out by keep_negatives */
  int64_t test_rows;     /* of the test set, with split */
} renzan_import_result;

struct ArrowArrayStream; /* of Arrow's C stream interface */

/* Writes the rows of `stream` as the dataset `directory`, which appears whole or not at all: the
 * same bytes as `renzan data import --format csv` makes of the same values. `schema` is the text of
 * a schema file, which messages call `schema_name` (docs/formats/dataset.md). Always releases
 * `stream`, also on an error. Rows are numbered from 0 in messages. `options` and `result` may be
 * NULL. RENZAN_CONFIG: the schema does not fit the columns; RENZAN_DATA: a bad row, or a stream
 * that fails; RENZAN_IO: the disk failed, also behind the stream, whose error then has an errno. */
RENZAN_EXPORT renzan_status renzan_dataset_write(struct ArrowArrayStream* stream,
                                                 const char* directory, const char* schema,
                                                 const char* schema_name,
                                                 const renzan_import_options* options,
                                                 renzan_import_result* result);

/* The same for `count` Parquet files with the same columns, in any order, one after the other: each
 * has a stream and a name, for messages, which count rows in each file. RENZAN_DATA, before any row
 * is read: a file lacks a column, or has it with a type in which values differ
 * (docs/formats/dataset.md). */
RENZAN_EXPORT renzan_status renzan_dataset_write_files(struct ArrowArrayStream* const* streams,
                                                       const char* const* files, size_t count,
                                                       const char* directory, const char* schema,
                                                       const char* schema_name,
                                                       const renzan_import_options* options,
                                                       renzan_import_result* result);

/* ---- Metrics ---- */

/* An event file, whose scalars TensorBoard shows. */
typedef struct renzan_events renzan_events;

/* Creates `directory` if necessary, and a file in it. `next_step`: the first step of a resumed run,
 * or 0. TensorBoard then ignores this step and later ones in earlier files of the directory. */
RENZAN_EXPORT renzan_status renzan_events_create(const char* directory, int64_t next_step,
                                                 renzan_events** events);
RENZAN_EXPORT void renzan_events_destroy(renzan_events* events);
RENZAN_EXPORT const char* renzan_events_path(const renzan_events* events);
/* Writes `count` numbers of one step, with their tags ("train/loss"), as float32. They are in the
 * file when it returns. */
RENZAN_EXPORT renzan_status renzan_events_add(renzan_events* events, int64_t step,
                                              const char* const* tags, const double* values,
                                              size_t count);

#ifdef __cplusplus
}
#endif

#endif /* RENZAN_CAPI_RENZAN_H_ */
