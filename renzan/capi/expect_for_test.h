#pragma once

/* Checks of the C interface's tests, which C99 programs can do. */

#include <stdio.h>
#include <stdlib.h>

#include "renzan/capi/renzan.h"

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
              renzan_last_error());                                                  \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)
#define EXPECT_OK(call) EXPECT((call) == RENZAN_OK)
