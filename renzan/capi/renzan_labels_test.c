/* Several labels through the C interface, from a C99 program: written from Arrow's C stream
 * interface, of which only the layout is known here, and read: renzan_labels_test DIRECTORY. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "renzan/capi/expect_for_test.h"
#include "renzan/capi/renzan.h"

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema*);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray*);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

enum { kRows = 3, kColumns = 2 };

static void ReleaseSchema(struct ArrowSchema* schema) { schema->release = NULL; }
static void ReleaseArray(struct ArrowArray* array) { array->release = NULL; }
static void ReleaseStream(struct ArrowArrayStream* stream) { stream->release = NULL; }

static int Columns(struct ArrowArrayStream* stream, struct ArrowSchema* schema) {
  static struct ArrowSchema columns[kColumns];
  static struct ArrowSchema* children[kColumns] = {&columns[0], &columns[1]};
  int i;
  (void)stream;
  for (i = 0; i < kColumns; ++i) {
    memset(&columns[i], 0, sizeof(columns[i]));
    columns[i].format = i == 0 ? "i" : "g";
    columns[i].name = i == 0 ? "click" : "stars";
    columns[i].flags = 2; /* nullable */
    columns[i].release = ReleaseSchema;
  }
  memset(schema, 0, sizeof(*schema));
  schema->format = "+s";
  schema->name = "";
  schema->n_children = kColumns;
  schema->children = children;
  schema->release = ReleaseSchema;
  return 0;
}

/* One batch: clicks 1, null, 0, and stars null, 2.5, -1. */
static int Rows(struct ArrowArrayStream* stream, struct ArrowArray* rows) {
  static const int32_t clicks[kRows] = {1, 9, 0};
  static const double stars[kRows] = {9, 2.5, -1};
  static const uint8_t valid[kColumns] = {5, 6}; /* a bit for each row, the first is the lowest */
  static const void* buffers[kColumns][2] = {{&valid[0], clicks}, {&valid[1], stars}};
  static const void* no_buffer[1] = {NULL};
  static struct ArrowArray columns[kColumns];
  static struct ArrowArray* children[kColumns] = {&columns[0], &columns[1]};
  int* const batches = stream->private_data;
  int i;
  memset(rows, 0, sizeof(*rows));
  if ((*batches)++ > 0) return 0; /* the end */
  for (i = 0; i < kColumns; ++i) {
    memset(&columns[i], 0, sizeof(columns[i]));
    columns[i].length = kRows;
    columns[i].null_count = 1;
    columns[i].n_buffers = 2;
    columns[i].buffers = buffers[i];
    columns[i].release = ReleaseArray;
  }
  rows->length = kRows;
  rows->n_buffers = 1;
  rows->buffers = no_buffer;
  rows->n_children = kColumns;
  rows->children = children;
  rows->release = ReleaseArray;
  return 0;
}

/* Equal, or both missing. */
static int IsLabel(float label, float expected) {
  return label == expected || (label != label && expected != expected);
}

int main(int argc, char** argv) {
  const char* const schema =
      "columns:\n  click: {role: label, optional: true}\n"
      "  stars: {role: label, optional: true, values: number}\n";
  const int64_t reversed[kRows] = {2, 1, 0};
  renzan_import_result result;
  renzan_dataset* dataset = NULL;
  renzan_batch* batch = NULL;
  struct ArrowArrayStream stream;
  char path[4096];
  int batches = 0, i;
  float missing = 0, expected[kColumns * kRows] = {0, 0, 1, -1, 2.5f, 0};
  EXPECT(argc == 2);
  missing /= missing;
  expected[1] = expected[5] = missing;
  memset(&stream, 0, sizeof(stream));
  stream.get_schema = Columns;
  stream.get_next = Rows;
  stream.release = ReleaseStream;
  stream.private_data = &batches;
  snprintf(path, sizeof(path), "%s/labels", argv[1]);
  EXPECT_OK(renzan_dataset_write(&stream, path, schema, "it", NULL, &result));
  EXPECT(result.rows == kRows && result.positive_rows == 1);

  EXPECT_OK(renzan_dataset_open(path, 1, &dataset));
  EXPECT(strstr(renzan_dataset_description(dataset),
                "\"labels\":[{\"name\":\"click\",\"rule\":\"\",\"optional\":true},"
                "{\"name\":\"stars\",\"rule\":\"values number\",\"optional\":true}]") != NULL);
  EXPECT_OK(renzan_dataset_read(dataset, reversed, kRows, &batch));
  for (i = 0; i < kColumns * kRows; ++i)
    EXPECT(IsLabel(renzan_batch_labels(batch)[i], expected[i]));
  for (i = 0; i < kRows; ++i) EXPECT(IsLabel(renzan_batch_label(batch)[i], expected[i]));
  EXPECT(renzan_batch_labels(NULL) == NULL);
  renzan_batch_destroy(batch);
  renzan_dataset_close(dataset);
  puts("ok");
  return 0;
}
