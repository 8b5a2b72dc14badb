/* Kinds of places that blocks can be moved to, each a row of one table. A place has an address; its
 * files are written once, whole, and never changed. Any thread; blocking. */
#ifndef SJ_COLLECTOR_SERVER_STORE_BLOCK_PLACE_H
#define SJ_COLLECTOR_SERVER_STORE_BLOCK_PLACE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <stdbool.h>

/* A file that is being read or written. */
typedef struct sj_place_file {
    int file;
} sj_place_file;

typedef struct sj_block_place_kind {
    const char *name; /* as in block_places */
    /* prepare makes the place usable; it exists. SJ_EINVAL, SJ_EIO, SJ_EFULL. */
    sj_status (*prepare)(const char *address, sj_error *error);
    /* create begins a file that was not there; who else asks finds it in use until it is closed. */
    sj_status (*create)(const char *address, const char *name, sj_place_file *file,
                        sj_error *error);
    sj_status (*append)(const sj_place_file *file, sj_slice bytes, sj_error *error);
    /* keep returns when the file, and its name, outlast a power failure. */
    sj_status (*keep)(const char *address, const sj_place_file *file, sj_error *error);
    sj_status (*open)(const char *address, const char *name, sj_place_file *file, sj_error *error);
    /* read gives exactly `size` bytes. SJ_EIO: it has not so many. */
    sj_status (*read)(const sj_place_file *file, uint64_t offset, uint8_t *bytes, size_t size,
                      sj_error *error);
    void (*close)(sj_place_file *file);
    /* remove: SJ_OK when the file is not there; SJ_EAGAIN: the place is away, or it is in use. */
    sj_status (*remove)(const char *address, const char *name);
} sj_block_place_kind;

extern const sj_block_place_kind sj_block_place_folder;

/* sj_block_place_find returns the kind of that name, or NULL. */
const sj_block_place_kind *sj_block_place_find(const char *name);

#endif
