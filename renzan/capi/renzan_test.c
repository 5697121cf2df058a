/* The C interface from a C99 program, over real processes: renzan_test DIRECTORY. */

#define _POSIX_C_SOURCE 200809L

#include "renzan/capi/renzan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "renzan/capi/expect_for_test.h"

enum { kWorkers = 3, kVirtualWorkers = 8, kCount = 1003 };

#define EXPECT_ERROR(call, status, text)                 \
  do {                                                   \
    EXPECT((call) == (status));                          \
    EXPECT(strstr(renzan_last_error(), (text)) != NULL); \
  } while (0)

static int FreePort(void) {
  struct sockaddr_in address;
  socklen_t size = sizeof(address);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof(address));
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT(fd >= 0 && bind(fd, (struct sockaddr*)&address, size) == 0);
  EXPECT(getsockname(fd, (struct sockaddr*)&address, &size) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

static renzan_comm* Join(int rank, int workers, int port) {
  renzan_place place;
  renzan_comm* comm = NULL;
  memset(&place, 0, sizeof(place));
  place.rank = place.local_rank = rank;
  place.world_size = workers;
  place.master_port = port;
  strcpy(place.master_addr, "127.0.0.1");
  EXPECT_OK(renzan_comm_create(&place, workers == 1 ? "local" : "gloo", 60, 1, &comm));
  EXPECT(renzan_comm_rank(comm) == rank && renzan_comm_world_size(comm) == workers);
  return comm;
}

/* Runs body(rank, port) in three processes. All have to end with status 0, but for `dies`. */
static void OnWorkers(void (*body)(int rank, int port), int dies) {
  const int port = FreePort();
  pid_t pids[kWorkers];
  int rank, status;
  for (rank = 0; rank < kWorkers; ++rank) {
    pids[rank] = fork();
    EXPECT(pids[rank] >= 0);
    if (pids[rank] == 0) {
      body(rank, port);
      exit(0);
    }
  }
  for (rank = 0; rank < kWorkers; ++rank) {
    EXPECT(waitpid(pids[rank], &status, 0) == pids[rank]);
    if (rank == dies)
      EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
      EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

static void Exchange(int rank, int port) {
  renzan_comm* const comm = Join(rank, kWorkers, port);
  int64_t value = rank == 1 ? 77 : 0, all[kWorkers], mine[2], sum[2], scattered = 0;
  void* recv[kWorkers];
  const void* send[kWorkers];
  size_t bytes[kWorkers], counts[kWorkers];
  int p;
  EXPECT(strcmp(renzan_comm_backend(comm), "gloo") == 0);
  EXPECT_OK(renzan_barrier(comm));
  EXPECT_OK(renzan_broadcast(comm, &value, sizeof(value), 1));
  EXPECT(value == 77);
  for (p = 0; p < kWorkers; ++p) {
    recv[p] = &all[p];
    bytes[p] = sizeof(all[p]);
    counts[p] = p == 2 ? 0 : 1;
  }
  value = 10 * rank;
  EXPECT_OK(renzan_all_gather(comm, &value, sizeof(value), recv, bytes));
  for (p = 0; p < kWorkers; ++p) EXPECT(all[p] == 10 * p);
  for (p = 0; p < kWorkers; ++p) all[p] = 0;
  for (p = 0; p < kWorkers; ++p) send[p] = &value;
  EXPECT_OK(renzan_all_to_all(comm, send, bytes, recv, bytes));
  for (p = 0; p < kWorkers; ++p) EXPECT(all[p] == 10 * p);
  mine[0] = rank;
  mine[1] = -rank;
  EXPECT_OK(renzan_all_reduce(comm, mine, sum, 2, RENZAN_INT64, RENZAN_SUM));
  EXPECT(sum[0] == 3 && sum[1] == -3);
  EXPECT_OK(renzan_reduce_scatter(comm, mine, &scattered, counts, RENZAN_INT64, RENZAN_MAX));
  EXPECT(scattered == (rank == 0 ? 2 : 0));
  EXPECT_ERROR(renzan_all_reduce(comm, sum, sum, (size_t)(1 + rank), RENZAN_FLOAT64, RENZAN_SUM),
               RENZAN_USAGE, "all_reduce of");
  EXPECT_OK(renzan_begin_step(comm, 6));
  EXPECT_ERROR(renzan_begin_step(comm, (uint64_t)(7 + rank)), RENZAN_USAGE, "training step ");
  renzan_comm_destroy(comm);
}

/* Virtual worker v's array: numbers whose sum depends on the order of additions. */
static void Fill(int v, float* values) {
  uint32_t words[4];
  int i;
  for (i = 0; i < kCount; ++i) {
    renzan_philox(renzan_key(5, "array", (uint64_t)v), (uint64_t)i, 0, words);
    values[i] = (float)(int32_t)words[0] / (float)(1u << (words[1] % 24));
  }
}

/* The same rounding as that of reductions which are sent in 16 bits. */
static void Codecs(void) {
  const float values[4] = {1.0f, -2.5f, 1.0f / 3, 1e30f};
  float decoded[4];
  uint16_t encoded[4];
  EXPECT_OK(renzan_encode(values, 4, RENZAN_FLOAT16, encoded));
  EXPECT(encoded[0] == 0x3c00 && encoded[1] == 0xc100 && encoded[3] == 0x7bff);
  EXPECT_OK(renzan_decode(encoded, 4, RENZAN_FLOAT16, decoded));
  EXPECT(decoded[0] == 1.0f && decoded[1] == -2.5f && decoded[2] == 0.333251953125f);
  EXPECT(decoded[3] == 65504.0f);
  EXPECT_OK(renzan_encode(values, 4, RENZAN_BFLOAT16, encoded));
  EXPECT(encoded[0] == 0x3f80 && encoded[2] == 0x3eab);
  EXPECT_OK(renzan_decode(encoded, 4, RENZAN_BFLOAT16, decoded));
  EXPECT(decoded[2] == 0.333984375f);
  EXPECT_OK(renzan_encode(NULL, 0, RENZAN_BFLOAT16, NULL));
  EXPECT_ERROR(renzan_encode(values, 4, RENZAN_INT8, encoded), RENZAN_USAGE, "int8");
  EXPECT_ERROR(renzan_decode(NULL, 4, RENZAN_FLOAT16, decoded), RENZAN_USAGE, "'encoded' is NULL");
}

static void SumOverVirtualWorkers(int rank, int workers, int port, float* sum) {
  renzan_comm* const comm = Join(rank, workers, port);
  renzan_reduction* reduction = NULL;
  float values[kCount];
  renzan_part part;
  int v, begin, end, finite;
  part.data = values;
  part.count = kCount;
  part.dtype = RENZAN_FLOAT32;
  EXPECT_OK(renzan_virtual_worker_range(kVirtualWorkers, workers, rank, &begin, &end));
  EXPECT_OK(renzan_reduction_create(comm, kVirtualWorkers, kCount, RENZAN_FLOAT32, RENZAN_FLOAT32,
                                    "gradients", &reduction));
  EXPECT_ERROR(renzan_reduction_start(reduction), RENZAN_USAGE, "has not been added");
  for (v = begin; v < end; ++v) {
    Fill(v, values);
    EXPECT_OK(renzan_reduction_add(reduction, &part, 1));
  }
  EXPECT_OK(renzan_reduction_start(reduction));
  EXPECT_ERROR(renzan_reduction_add(reduction, &part, 1), RENZAN_USAGE, "out of order");
  EXPECT_OK(renzan_reduction_continue(reduction));
  part.data = sum;
  EXPECT_OK(renzan_reduction_finish(reduction, &part, 1, 0.125, &finite));
  EXPECT(finite);
  EXPECT(renzan_reduction_num_arrays(reduction) <= 4);
  renzan_reduction_destroy(reduction);
  renzan_comm_destroy(comm);
}

static float expected_sum[kCount];

static void SumOnWorkers(int rank, int port) {
  float sum[kCount];
  SumOverVirtualWorkers(rank, kWorkers, port, sum);
  EXPECT(memcmp(sum, expected_sum, sizeof(sum)) == 0);
}

/* A peer dies: an error that names it, and SIGPIPE, which is as it was, does not kill. */
static void SurviveAPeer(int rank, int port) {
  const size_t count = 1u << 20;
  float* const values = calloc(count, sizeof(float));
  struct sigaction action;
  sigset_t mask;
  renzan_status status = RENZAN_OK;
  renzan_comm* const comm = Join(rank, kWorkers, port);
  EXPECT(values != NULL);
  EXPECT_OK(renzan_barrier(comm));
  if (rank == 2) raise(SIGKILL);
  while (status == RENZAN_OK)
    status = renzan_all_reduce(comm, values, values, count, RENZAN_FLOAT32, RENZAN_SUM);
  EXPECT(status == RENZAN_UNAVAILABLE);
  /* "lost worker 2", or "0, 2" if that one has ended meanwhile. */
  EXPECT(strstr(renzan_last_error(), "lost worker") != NULL);
  EXPECT(strstr(renzan_last_error(), " 2") != NULL);
  EXPECT(renzan_barrier(comm) == RENZAN_UNAVAILABLE);
  EXPECT(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
  EXPECT(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGPIPE));
  renzan_comm_destroy(comm);
  free(values);
}

static void WrongArguments(void) {
  renzan_comm* const comm = Join(0, 1, 0);
  renzan_comm* other = NULL;
  renzan_place place;
  int64_t order[4];
  float value = 1;
  EXPECT_OK(renzan_place_from_environment(&place));
  EXPECT_ERROR(renzan_place_from_environment(NULL), RENZAN_USAGE, "'place' is NULL");
  EXPECT_ERROR(renzan_comm_create(&place, "nccl", 1, 1, &other), RENZAN_CONFIG, "unknown backend");
  EXPECT_ERROR(renzan_comm_create(&place, "local", 1, 0, &other), RENZAN_USAGE, "0 threads");
  EXPECT_ERROR(renzan_barrier(NULL), RENZAN_USAGE, "'comm' is NULL");
  EXPECT_ERROR(renzan_broadcast(comm, &value, 4, 3), RENZAN_USAGE, "worker 3");
  EXPECT_ERROR(renzan_all_reduce(comm, &value, &value, 1, RENZAN_FLOAT32, RENZAN_BIT_OR),
               RENZAN_USAGE, "integers");
  EXPECT_ERROR(renzan_all_reduce(comm, NULL, &value, 1, RENZAN_FLOAT32, RENZAN_SUM), RENZAN_USAGE,
               "'send' is NULL");
  EXPECT_ERROR(renzan_all_reduce(comm, &value, &value, 1, (renzan_dtype)99, RENZAN_SUM),
               RENZAN_USAGE, "99");
  EXPECT_ERROR(renzan_sample_order(1, 0, 10, 8, 12, order), RENZAN_USAGE, "[8, 12)");
  renzan_comm_destroy(comm);
  renzan_comm_destroy(NULL);
  renzan_reduction_destroy(NULL);
  renzan_checkpoints_close(NULL);
  renzan_checkpoint_close(NULL);
  renzan_checkpoint_list_destroy(NULL);
}

static void OrderAndRandomness(void) {
  int64_t order[10], part[4];
  int seen[10] = {0}, i;
  uint32_t a[4], b[4];
  EXPECT(strcmp(renzan_version(), "0.1.0") == 0);
  EXPECT_OK(renzan_sample_order(1, 3, 10, 0, 10, order));
  for (i = 0; i < 10; ++i) seen[order[i]]++;
  for (i = 0; i < 10; ++i) EXPECT(seen[i] == 1);
  EXPECT_OK(renzan_sample_order(1, 3, 10, 5, 9, part));
  EXPECT(memcmp(part, order + 5, sizeof(part)) == 0);
  EXPECT(renzan_key(1, "dropout", 0) != renzan_key(1, "order", 0));
  renzan_philox(renzan_key(1, "x", 0), 4, 0, a);
  renzan_philox(renzan_key(1, "x", 0), 4, 0, b);
  EXPECT(memcmp(a, b, sizeof(a)) == 0);
}

static void Checkpoints(const char* directory) {
  const double weights[6] = {1, 2, 3, 4, 5, 6};
  const unsigned char flags[3] = {1, 0, 1};
  const int64_t shape[2] = {2, 3}, three = 3;
  const renzan_text run = {"program", "test"};
  renzan_tensor tensors[2], tensor;
  renzan_checkpoints *checkpoints = NULL, *second = NULL;
  renzan_checkpoint_list* list = NULL;
  renzan_checkpoint* checkpoint = NULL;
  renzan_checkpoint_entry entry;
  renzan_text text;
  char digest[65], same[65], path[4096];
  double read[6];
  FILE* file;
  memset(tensors, 0, sizeof(tensors));
  tensors[0].key = "flags";
  tensors[0].dtype = "BOOL";
  tensors[0].shape = &three;
  tensors[0].dims = 1;
  tensors[0].data = flags;
  tensors[0].bytes = sizeof(flags);
  tensors[1].key = "weights";
  tensors[1].dtype = "F64";
  tensors[1].shape = shape;
  tensors[1].dims = 2;
  tensors[1].data = weights;
  tensors[1].bytes = sizeof(weights);

  EXPECT_ERROR(renzan_checkpoint_open(directory, &checkpoint), RENZAN_NO_INPUT, "contains none");
  EXPECT_OK(renzan_checkpoints_open(directory, &checkpoints));
  EXPECT_ERROR(renzan_checkpoints_open(directory, &second), RENZAN_CANT_CREATE, "another run");
  EXPECT_OK(renzan_checkpoints_write(checkpoints, 7, tensors, 2, &run, 1, "a: 1\n", 1, digest));
  EXPECT(strlen(digest) == 64);
  EXPECT_OK(renzan_model_sha256(7, tensors, 2, same));
  EXPECT(strcmp(digest, same) == 0);
  EXPECT_OK(renzan_checkpoints_write(checkpoints, 9, tensors, 2, NULL, 0, NULL, 0, digest));
  EXPECT(strcmp(digest, "") == 0);

  EXPECT_OK(renzan_checkpoint_list_create(directory, &list));
  EXPECT(renzan_checkpoint_list_size(list) == 2);
  EXPECT_OK(renzan_checkpoint_list_get(list, 1, &entry));
  EXPECT(entry.step == 7 && entry.status == RENZAN_OK && strcmp(entry.name, "step-00000007") == 0);
  EXPECT_ERROR(renzan_checkpoint_list_get(list, 2, &entry), RENZAN_USAGE, "no checkpoint 2");
  EXPECT_OK(renzan_checkpoint_list_get(list, 1, &entry));
  EXPECT_OK(renzan_checkpoint_open(entry.path, &checkpoint));
  renzan_checkpoint_list_destroy(list);
  EXPECT(renzan_checkpoint_step(checkpoint) == 7);
  EXPECT(strcmp(renzan_checkpoint_model_sha256(checkpoint), same) == 0);
  EXPECT(strcmp(renzan_checkpoint_config(checkpoint), "a: 1\n") == 0);
  EXPECT(renzan_checkpoint_num_run(checkpoint) == 1);
  EXPECT_OK(renzan_checkpoint_run(checkpoint, 0, &text));
  EXPECT(strcmp(text.key, "program") == 0 && strcmp(text.value, "test") == 0);
  EXPECT(renzan_checkpoint_num_tensors(checkpoint) == 2);
  EXPECT_OK(renzan_checkpoint_tensor(checkpoint, 1, &tensor));
  EXPECT(strcmp(tensor.key, "weights") == 0 && strcmp(tensor.dtype, "F64") == 0);
  EXPECT(tensor.dims == 2 && tensor.shape[1] == 3 && tensor.bytes == sizeof(weights));
  EXPECT_OK(renzan_checkpoint_read(checkpoint, "weights", read, sizeof(read)));
  EXPECT(memcmp(read, weights, sizeof(read)) == 0);
  EXPECT_ERROR(renzan_checkpoint_read(checkpoint, "weight", read, 8), RENZAN_DATA,
               "nearest is 'weights'");
  EXPECT_ERROR(renzan_checkpoint_read(checkpoint, "flags", read, 8), RENZAN_USAGE, "3 bytes");
  EXPECT_OK(renzan_checkpoint_verify(checkpoint));
  renzan_checkpoint_close(checkpoint);

  /* A flipped bit is noticed when the tensor is read. */
  snprintf(path, sizeof(path), "%s/step-00000009/state.safetensors", directory);
  file = fopen(path, "r+b");
  EXPECT(file != NULL && fseek(file, -1, SEEK_END) == 0 && fputc(0x40, file) == 0x40);
  EXPECT(fclose(file) == 0);
  EXPECT_OK(renzan_checkpoint_open(directory, &checkpoint));
  EXPECT(renzan_checkpoint_step(checkpoint) == 9);
  EXPECT_ERROR(renzan_checkpoint_read(checkpoint, "weights", read, sizeof(read)), RENZAN_DATA,
               "is corrupt");
  renzan_checkpoint_close(checkpoint);
  EXPECT_OK(renzan_checkpoints_move_aside(checkpoints, 9));
  EXPECT_OK(renzan_checkpoints_write(checkpoints, 11, tensors, 2, NULL, 0, NULL, 0, NULL));
  EXPECT_OK(renzan_checkpoints_remove_old(checkpoints, 1));
  EXPECT_OK(renzan_checkpoint_list_create(directory, &list));
  EXPECT(renzan_checkpoint_list_size(list) == 1);
  renzan_checkpoint_list_destroy(list);

  tensors[1].dtype = "C64";
  EXPECT_ERROR(renzan_checkpoints_write(checkpoints, 12, tensors, 2, NULL, 0, NULL, 0, NULL),
               RENZAN_USAGE, "C64");
  tensors[1].dtype = "F32";
  EXPECT_ERROR(renzan_checkpoints_write(checkpoints, 12, tensors, 2, NULL, 0, NULL, 0, NULL),
               RENZAN_USAGE, "needs 24");
  tensors[1] = tensors[0];
  EXPECT_ERROR(renzan_checkpoints_write(checkpoints, 12, tensors, 2, NULL, 0, NULL, 0, NULL),
               RENZAN_USAGE, "'flags' is given twice");
  renzan_checkpoints_close(checkpoints);
  EXPECT_OK(renzan_checkpoints_open(directory, &checkpoints));
  renzan_checkpoints_close(checkpoints);
}

static void Status(const char* directory) {
  renzan_run_status status;
  char path[4096], text[4096];
  FILE* file;
  size_t size;
  memset(&status, 0, sizeof(status));
  status.state = "running";
  status.step = 3;
  status.steps = 10;
  status.eta_seconds = -1;
  status.checkpoint_step = -1;
  snprintf(path, sizeof(path), "%s/status.json", directory);
  EXPECT_OK(renzan_write_run_status(path, &status));
  file = fopen(path, "rb");
  EXPECT(file != NULL);
  size = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[size] = 0;
  EXPECT(strstr(text, "\"state\": \"running\"") != NULL && strstr(text, "\"step\": 3") != NULL);
  EXPECT(strstr(text, "\"last_checkpoint\": null") != NULL);
  EXPECT_ERROR(renzan_write_run_status("/nonexistent/status.json", &status), RENZAN_CANT_CREATE,
               "/nonexistent");
}

/* Arrow's C stream interface, of which only the layout is known here. */
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, void*);
  int (*get_next)(struct ArrowArrayStream*, void*);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

static int NoSchema(struct ArrowArrayStream* stream, void* schema) {
  (void)stream;
  (void)schema;
  return 5;
}
static const char* WhyNoSchema(struct ArrowArrayStream* stream) {
  (void)stream;
  return "no such table";
}
static void CountRelease(struct ArrowArrayStream* stream) {
  ++*(int*)stream->private_data;
  stream->release = NULL;
}

/* A stream is released whatever goes wrong. */
static void WriteDataset(const char* directory) {
  const char* const schema = "columns: {y: {role: label}}";
  char path[4096];
  int released = 0, i;
  struct ArrowArrayStream stream;
  memset(&stream, 0, sizeof(stream));
  snprintf(path, sizeof(path), "%s/clicks", directory);
  for (i = 0; i < 3; ++i) {
    stream.get_schema = NoSchema;
    stream.get_next = NoSchema; /* never called */
    stream.get_last_error = WhyNoSchema;
    stream.release = CountRelease;
    stream.private_data = &released;
    if (i == 0)
      EXPECT_ERROR(renzan_dataset_write(&stream, path, schema, "it", NULL, NULL), RENZAN_DATA,
                   "no such table");
    else if (i == 1)
      EXPECT_ERROR(
          renzan_dataset_write(&stream, path, "columns: {y: {role: lable}}", "it", NULL, NULL),
          RENZAN_CONFIG, "it:1");
    else
      EXPECT_ERROR(renzan_dataset_write(&stream, path, NULL, "it", NULL, NULL), RENZAN_USAGE,
                   "'schema' is NULL");
    EXPECT(released == i + 1);
  }
  EXPECT_ERROR(renzan_dataset_write(&stream, path, schema, "it", NULL, NULL), RENZAN_USAGE,
               "read before");
  EXPECT_ERROR(renzan_dataset_write(NULL, path, schema, "it", NULL, NULL), RENZAN_USAGE, "stream");
  {
    struct ArrowArrayStream* streams[2];
    const char* const files[2] = {"a.parquet", "b.parquet"};
    streams[0] = &stream;
    streams[1] = NULL;
    stream.release = CountRelease;
    EXPECT_ERROR(renzan_dataset_write_files(streams, files, 1, path, schema, "it", NULL, NULL),
                 RENZAN_DATA, "a.parquet: reading gives no columns: no such table");
    EXPECT(released == 4);
    stream.release = CountRelease;
    EXPECT_ERROR(renzan_dataset_write_files(streams, files, 2, path, schema, "it", NULL, NULL),
                 RENZAN_USAGE, "'streams' is NULL");
    EXPECT(released == 5);
    EXPECT_ERROR(renzan_dataset_write_files(streams, files, 0, path, schema, "it", NULL, NULL),
                 RENZAN_USAGE, "no files");
    EXPECT_ERROR(renzan_dataset_write_files(streams, NULL, 1, path, schema, "it", NULL, NULL),
                 RENZAN_USAGE, "'files' is NULL");
    EXPECT_ERROR(renzan_dataset_write_files(NULL, files, 1, path, schema, "it", NULL, NULL),
                 RENZAN_USAGE, "'streams' is NULL");
  }
}

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  signal(SIGPIPE, SIG_DFL);
  SumOverVirtualWorkers(0, 1, 0, expected_sum);
  OnWorkers(Exchange, -1);
  OnWorkers(SumOnWorkers, -1);
  OnWorkers(SurviveAPeer, 2);
  WrongArguments();
  Codecs();
  OrderAndRandomness();
  Checkpoints(argv[1]);
  Status(argv[1]);
  WriteDataset(argv[1]);
  puts("ok");
  return 0;
}
