#include "proto/base/status.h"

const char *sj_status_text(sj_status status)
{
    switch (status) {
    case SJ_OK:
        return "success";
    case SJ_EAGAIN:
        return "not ready yet";
    case SJ_ENOMEM:
        return "out of memory";
    case SJ_EIO:
        return "input/output error";
    case SJ_ENOTFOUND:
        return "not found";
    case SJ_EEXIST:
        return "already exists";
    case SJ_EINVAL:
        return "invalid argument";
    case SJ_ECORRUPT:
        return "corrupt data";
    case SJ_EVERSION:
        return "unsupported version";
    case SJ_ELIMIT:
        return "limit exceeded";
    case SJ_EFULL:
        return "no space left";
    case SJ_ECLOSED:
        return "closed";
    case SJ_ETIMEDOUT:
        return "timed out";
    case SJ_EPERM:
        return "not permitted";
    case SJ_EUNSUPPORTED:
        return "not supported here";
    }
    return "unknown status";
}
