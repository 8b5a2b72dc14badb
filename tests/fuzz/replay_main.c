/* Runs a fuzz target over files and folders. With it, ctest replays the corpora of programs from
 * any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return 0;
    }
    size_t capacity = 1 << 16;
    size_t size = 0;
    uint8_t *data = malloc(capacity);
    size_t got;
    while (data != NULL && (got = fread(data + size, 1, capacity - size, file)) > 0) {
        size += got;
        if (size == capacity) {
            capacity *= 2;
            data = realloc(data, capacity);
        }
    }
    fclose(file);
    if (data == NULL) {
        return 0;
    }
    /* The allocation has the exact size, so that a sanitizer detects an access one byte past the
     * input. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    free(data);
    return 1;
}

static int replay_path(const char *path)
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return replay_file(path);
    }
    int replayed = 0;
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        char child[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
        replayed += replay_path(child);
    }
    closedir(directory);
    return replayed;
}

int main(int argc, char **argv)
{
    int replayed = 0;
    for (int i = 1; i < argc; i++) {
        replayed += replay_path(argv[i]);
    }
    printf("%d inputs replayed\n", replayed);
    return replayed > 0 ? 0 : 1;
}
