/* Binary search in a sorted sequence. */
#ifndef SJ_PROTO_BASE_BISECT_H
#define SJ_PROTO_BASE_BISECT_H

/* Returns the first number from `first` to `end` - 1 that does not meet `condition`, an expression
 * about `index`. Returns `end` if all numbers meet it. All numbers that meet the condition must
 * come first. The result has the type of `end`. */
#define SJ_BISECT(first, end, index, condition)                                                    \
    ({                                                                                             \
        __typeof__((end) + 0) sj_low_ = (first);                                                   \
        __typeof__((end) + 0) sj_high_ = (end);                                                    \
        while (sj_low_ < sj_high_) {                                                               \
            const __typeof__((end) + 0) index = sj_low_ + (sj_high_ - sj_low_) / 2;                \
            if (condition) {                                                                       \
                sj_low_ = index + 1;                                                               \
            } else {                                                                               \
                sj_high_ = index;                                                                  \
            }                                                                                      \
        }                                                                                          \
        sj_low_;                                                                                   \
    })

#endif
