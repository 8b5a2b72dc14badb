#include "agent/session/metadata_store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct sj_metadata_store {
    int fd;
    bool failed;
};

enum { LENGTHS_BYTES = 12 }; /* type, bytes of the header, bytes of the payload */

static int open_store(const char *runtime_directory, int flags)
{
    char path[PATH_MAX];
    const int written = snprintf(path, sizeof(path), "%s/control-frames", runtime_directory);
    return written > 0 && written < PATH_MAX ? open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600)
                                             : -1;
}

sj_status sj_metadata_store_new(const char *runtime_directory, sj_metadata_store **store)
{
    sj_metadata_store *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->fd = open_store(runtime_directory, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
    if (made->fd < 0) {
        free(made);
        return SJ_EIO;
    }
    *store = made;
    return SJ_OK;
}

void sj_metadata_store_free(sj_metadata_store *store)
{
    if (store != NULL) {
        close(store->fd);
        free(store);
    }
}

void sj_metadata_store_clear(sj_metadata_store *store)
{
    store->failed = ftruncate(store->fd, 0) != 0;
}

void sj_metadata_store_add(sj_metadata_store *store, sj_frame_type type, sj_slice header,
                           sj_slice payload)
{
    uint32_t lengths[] = {(uint32_t)type, (uint32_t)header.size, (uint32_t)payload.size};
    const struct iovec parts[] = {
        {.iov_base = lengths, .iov_len = sizeof(lengths)},
        {.iov_base = (void *)(uintptr_t)header.data, .iov_len = header.size},
        {.iov_base = (void *)(uintptr_t)payload.data, .iov_len = payload.size}};
    const size_t size = sizeof(lengths) + header.size + payload.size;
    if (!store->failed && writev(store->fd, parts, 3) != (ssize_t)size) {
        store->failed = true;
    }
}

static sj_status visit_all(sj_slice bytes, void *context,
                           sj_status (*visit)(void *context, sj_frame_type type, sj_slice header,
                                              sj_slice payload))
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    sj_status status = SJ_OK;
    while (status == SJ_OK && sj_reader_left(&reader) >= LENGTHS_BYTES) {
        const sj_frame_type type = (sj_frame_type)sj_read_u32(&reader);
        const uint32_t header_bytes = sj_read_u32(&reader);
        const uint32_t payload_bytes = sj_read_u32(&reader);
        const sj_slice header = {.data = sj_read_bytes(&reader, header_bytes),
                                 .size = header_bytes};
        const sj_slice payload = {.data = sj_read_bytes(&reader, payload_bytes),
                                  .size = payload_bytes};
        if (reader.bad) {
            break; /* the recorder was killed while it wrote this frame */
        }
        status = visit(context, type, header, payload);
    }
    return status;
}

sj_status sj_metadata_store_read(const char *runtime_directory, void *context,
                                 sj_status (*visit)(void *context, sj_frame_type type,
                                                    sj_slice header, sj_slice payload))
{
    struct stat about;
    const int fd = open_store(runtime_directory, O_RDONLY);
    if (fd < 0) {
        return SJ_ENOTFOUND;
    }
    void *bytes = MAP_FAILED;
    const bool is_own = fstat(fd, &about) == 0 && about.st_uid == geteuid();
    if (is_own && about.st_size == 0) {
        close(fd);
        return SJ_OK;
    }
    if (is_own) {
        bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (bytes == MAP_FAILED) {
        return SJ_EIO;
    }
    const sj_slice all = {.data = bytes, .size = (size_t)about.st_size};
    const sj_status status = visit_all(all, context, visit);
    munmap(bytes, (size_t)about.st_size);
    return status;
}
