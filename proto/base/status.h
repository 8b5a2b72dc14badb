/* sj_status: the outcome of every operation that can fail, in all components. */
#ifndef SJ_PROTO_BASE_STATUS_H
#define SJ_PROTO_BASE_STATUS_H

#define SJ_MUST_CHECK __attribute__((warn_unused_result))

typedef enum sj_status {
    SJ_OK = 0,
    SJ_EAGAIN,      /* nothing to do now; the same call may succeed later */
    SJ_ENOMEM,      /* an allocation failed or a fixed pool is exhausted */
    SJ_EIO,         /* the operating system refused; errno or the sj_error says why */
    SJ_ENOTFOUND,   /* the thing that was named does not exist */
    SJ_EEXIST,      /* it exists already */
    SJ_EINVAL,      /* the caller's argument is wrong */
    SJ_ECORRUPT,    /* bytes do not follow their format */
    SJ_EVERSION,    /* this build cannot read that version */
    SJ_ELIMIT,      /* a documented limit would be exceeded */
    SJ_EFULL,       /* the disk, ring or queue is full */
    SJ_ECLOSED,     /* the peer or the object is gone */
    SJ_ETIMEDOUT,   /* the deadline passed */
    SJ_EPERM,       /* not allowed for this user or token */
    SJ_EUNSUPPORTED /* valid, but this machine or build cannot do it */
} sj_status;

/* Returns a short English phrase for a status. Static storage. Thread-safe. */
const char *sj_status_text(sj_status status);

/* Returns from the calling function if `expression` is not SJ_OK. No other macro here changes the
 * control flow. */
#define SJ_TRY(expression)                                                                         \
    do {                                                                                           \
        sj_status sj_try_status_ = (expression);                                                   \
        if (sj_try_status_ != SJ_OK) {                                                             \
            return sj_try_status_;                                                                 \
        }                                                                                          \
    } while (0)

#endif
