/* Kinds of places that blocks can be moved to; block_place.c lists them. A place has an address: of
 * the kind "folder", an absolute path. Its files are written once, as a whole, and never changed.
 * Thread-safe. The functions block. */
#ifndef SJ_COLLECTOR_SERVER_STORE_BLOCK_PLACE_H
#define SJ_COLLECTOR_SERVER_STORE_BLOCK_PLACE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <stdbool.h>

/* A file that is open for reading or writing. */
typedef struct sj_place_file {
    int file;
} sj_place_file;

typedef struct sj_block_place_kind {
    const char *name; /* as in the table block_places */
    /* Makes an existing place usable. Returns SJ_EINVAL, SJ_EIO or SJ_EFULL. */
    sj_status (*prepare)(const char *address, sj_error *error);
    /* Creates a file that did not exist, and locks it until it is closed. Meanwhile `remove`
     * treats it as in use. Returns SJ_EAGAIN if another process deleted the file at once;
     * SJ_EINVAL, SJ_EFULL or SJ_EIO. */
    sj_status (*create)(const char *address, const char *name, sj_place_file *file,
                        sj_error *error);
    sj_status (*append)(const sj_place_file *file, sj_slice bytes, sj_error *error);
    /* Writes the file and its name to the disk, so that they survive a power failure. */
    sj_status (*keep)(const char *address, const sj_place_file *file, sj_error *error);
    sj_status (*open)(const char *address, const char *name, sj_place_file *file, sj_error *error);
    /* Reads exactly `size` bytes. Returns SJ_EIO if the file has fewer. */
    sj_status (*read)(const sj_place_file *file, uint64_t offset, uint8_t *bytes, size_t size,
                      sj_error *error);
    void (*close)(sj_place_file *file);
    /* Deletes a file. Returns SJ_OK if the file does not exist, and SJ_EAGAIN if the place is not
     * available or the file is in use. */
    sj_status (*remove)(const char *address, const char *name);
} sj_block_place_kind;

extern const sj_block_place_kind sj_block_place_folder;

/* Returns the kind with that name, or NULL. */
const sj_block_place_kind *sj_block_place_find(const char *name);

#endif
