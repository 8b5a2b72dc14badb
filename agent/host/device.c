#include "agent/host/device.h"

#include "agent/host/directories.h"
#include "proto/wire/frame.h"
#include "proto/wire/sojourn.pb-c.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_line(const char *path, char *line, size_t capacity)
{
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (file != NULL) {
        if (fgets(line, (int)capacity, file) != NULL) {
            line[strcspn(line, "\n")] = '\0';
        }
        fclose(file);
    }
}

/* Reads the value of a key. If the file or the key does not exist, `value` does not change. */
static void read_os_release(const char *key, char *value, size_t capacity)
{
    char line[256];
    const size_t key_bytes = strlen(key);
    FILE *file = fopen("/etc/os-release", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, key_bytes) == 0 && line[key_bytes] == '=') {
            char *begin = line + key_bytes + 1;
            begin += *begin == '"';
            begin[strcspn(begin, "\"\n")] = '\0';
            snprintf(value, capacity, "%s", begin);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void read_model(char *model, size_t capacity)
{
    static const char *const places[] = {"/proc/device-tree/model",
                                         "/sys/class/dmi/id/product_name"};
    model[0] = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && model[0] == '\0'; i++) {
        read_line(places[i], model, capacity);
    }
}

static void read_build(const struct utsname *system, char *build, size_t capacity)
{
    char image[64] = "";
    read_os_release("BUILD_ID", image, sizeof(image));
    snprintf(build, capacity, "%.40s %.60s%s%.24s", system->sysname, system->release,
             image[0] != '\0' ? " " : "", image);
}

static sj_status read_id(const char *path, uint8_t *id)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO;
    }
    const ssize_t got = read(fd, id, SJ_DEVICE_ID_BYTES);
    close(fd);
    return got == SJ_DEVICE_ID_BYTES ? SJ_OK : SJ_ECORRUPT;
}

/* Generates an id in a temporary file and links the file to `path`. If two processes do so at the
 * same time, one link fails, and both processes use the id in `path`. */
static sj_status make_id(const char *path, uint8_t *id, sj_error *error)
{
    char temporary_path[PATH_MAX];
    snprintf(temporary_path, sizeof(temporary_path), "%.*s.%d", PATH_MAX - 16, path, (int)getpid());
    const int fd = open(temporary_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool written = fd >= 0 && getrandom(id, SJ_DEVICE_ID_BYTES, 0) == SJ_DEVICE_ID_BYTES &&
                   write(fd, id, SJ_DEVICE_ID_BYTES) == SJ_DEVICE_ID_BYTES && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    if (written) {
        (void)!link(temporary_path, path);
    }
    unlink(temporary_path);
    if (!written || read_id(path, id) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "cannot keep this device's id in %s: %s", path,
                       strerror(errno));
    }
    return SJ_OK;
}

sj_status sj_device_read(sj_device *device, sj_error *error)
{
    char directory[PATH_MAX];
    char path[PATH_MAX + 16];
    struct utsname system = {0};
    SJ_TRY(sj_state_directory("", directory, sizeof(directory), error));
    snprintf(path, sizeof(path), "%s/device-id", directory);
    const sj_status status = read_id(path, device->id);
    if (status == SJ_ECORRUPT) {
        unlink(path);
    }
    if (status != SJ_OK) {
        SJ_TRY(make_id(path, device->id, error));
    }
    (void)uname(&system);
    snprintf(device->name, sizeof(device->name), "%s", system.nodename);
    snprintf(device->machine, sizeof(device->machine), "%.31s", system.machine);
    snprintf(device->os, sizeof(device->os), "Linux");
    read_os_release("PRETTY_NAME", device->os, sizeof(device->os));
    read_build(&system, device->build, sizeof(device->build));
    read_model(device->model, sizeof(device->model));
    device->tag_count = 0;
    read_line("/proc/sys/kernel/random/boot_id", device->boot_id, sizeof(device->boot_id));
    return SJ_OK;
}

sj_status sj_device_hello(const sj_device *device, const char *token, sj_slice secret,
                          uint8_t **frame, size_t *size_bytes)
{
    char *tags[SJ_DEVICE_TAGS];
    Sojourn__Hello hello = SOJOURN__HELLO__INIT;
    hello.device_id.len = SJ_DEVICE_ID_BYTES;
    hello.device_id.data = (uint8_t *)(uintptr_t)device->id;
    hello.device_name = (char *)(uintptr_t)device->name;
    hello.token = (char *)(uintptr_t)(token != NULL ? token : "");
    hello.product_version = (char *)(uintptr_t)SJ_VERSION;
    hello.model = (char *)(uintptr_t)device->model;
    hello.build = (char *)(uintptr_t)device->build;
    for (size_t i = 0; i < device->tag_count; i++) {
        tags[i] = (char *)(uintptr_t)device->tags[i];
    }
    hello.tags = tags;
    hello.n_tags = device->tag_count;
    hello.os = (char *)(uintptr_t)device->os;
    hello.machine = (char *)(uintptr_t)device->machine;
    hello.boot_id = (char *)(uintptr_t)device->boot_id;
    hello.session_secret =
        (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)secret.data, .len = secret.size};
    const size_t header_bytes = sojourn__hello__get_packed_size(&hello);
    const size_t capacity = header_bytes + SJ_FRAME_PREFIX_BYTES;
    uint8_t *header = malloc(header_bytes);
    uint8_t *packed = malloc(capacity);
    sj_status status = SJ_ENOMEM;
    if (header != NULL && packed != NULL) {
        sojourn__hello__pack(&hello, header);
        status = sj_frame_write(SJ_FRAME_HELLO, (sj_slice){.data = header, .size = header_bytes},
                                (sj_slice){0}, packed, capacity, size_bytes);
    }
    free(header);
    if (status != SJ_OK) {
        free(packed);
        return status;
    }
    *frame = packed;
    return SJ_OK;
}
