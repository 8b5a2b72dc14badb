#include "collector-server/query/spill_file.h"

static int open_file(sj_spill_file *spill)
{
    const int flags = SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                      SQLITE_OPEN_EXCLUSIVE | SQLITE_OPEN_DELETEONCLOSE;
    int out_flags = 0;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    sqlite3_file *file = vfs != NULL ? sqlite3_malloc(vfs->szOsFile) : NULL;
    if (file == NULL) {
        return SQLITE_NOMEM;
    }
    file->pMethods = NULL;
    const int result = vfs->xOpen(vfs, NULL, file, flags, &out_flags);
    if (result != SQLITE_OK) {
        sqlite3_free(file);
        return result;
    }
    spill->file = file;
    return SQLITE_OK;
}

int sj_spill_append(sj_spill_file *spill, const void *bytes, size_t size)
{
    if (spill->file == NULL) {
        const int opened = open_file(spill);
        if (opened != SQLITE_OK) {
            return opened;
        }
    }
    const int result = spill->file->pMethods->xWrite(spill->file, bytes, (int)size, spill->size);
    spill->size += result == SQLITE_OK ? (int64_t)size : 0;
    return result;
}

int sj_spill_read(sj_spill_file *spill, void *bytes, size_t size, int64_t offset)
{
    return spill->file->pMethods->xRead(spill->file, bytes, (int)size, offset);
}

void sj_spill_clear(sj_spill_file *spill)
{
    if (spill->file != NULL) {
        spill->file->pMethods->xTruncate(spill->file, 0);
    }
    spill->size = 0;
}

void sj_spill_close(sj_spill_file *spill)
{
    if (spill->file != NULL) {
        spill->file->pMethods->xClose(spill->file);
        sqlite3_free(spill->file);
    }
    *spill = (sj_spill_file){0};
}
