/* Design notes. Bins are up to 6 % wide, wider than the slowdowns of interest. So the mean of the
 * undisturbed calls is the exact sum minus the disturbed calls, and the bins only limit it: from
 * below by the low end, from above by the high end of every undisturbed call's bin. */
#include "collector-server/query/typical.h"

#include "proto/callgraph/histogram.h"

#include <math.h>

typedef struct body_sums {
    double count, low, high; /* undisturbed calls; ticks */
    double tail_count, tail; /* other calls; middles of bins, ticks */
} body_sums;

static void add_up(const sj_histogram *histogram, double limit, body_sums *sums)
{
    for (uint32_t octave = 0; octave < histogram->octave_count; ++octave) {
        for (uint32_t sub = 0; sub < 1u << SJ_HISTOGRAM_SUB_BITS; ++sub) {
            const double count = (double)histogram->octaves[octave].count[sub];
            if (count <= 0) {
                continue;
            }
            const uint32_t bin =
                ((histogram->first_octave + octave) << SJ_HISTOGRAM_SUB_BITS) + sub;
            const double low = (double)sj_histogram_low(bin);
            const double high = (double)sj_histogram_high(bin);
            if (low > limit) {
                sums->tail_count += count;
                sums->tail += count * (low + high) / 2;
            } else {
                sums->count += count;
                sums->low += count * low;
                sums->high += count * high;
            }
        }
    }
}

double sj_typical_total_ns(sj_slice bytes, double total_ns, double ns_per_tick)
{
    sj_histogram histogram = {0};
    body_sums sums = {0};
    if (bytes.size == 0 || sj_histogram_decode(bytes, &histogram) != SJ_OK) {
        sj_histogram_deinit(&histogram);
        return total_ns;
    }
    add_up(&histogram, 2 * (double)sj_histogram_quantile(&histogram, 0.5), &sums);
    sj_histogram_deinit(&histogram);
    if (sums.tail_count <= 0 || sums.count <= 0) {
        return total_ns;
    }
    double body_ns = total_ns - sums.tail * ns_per_tick;
    body_ns = fmax(body_ns, sums.low * ns_per_tick);
    body_ns = fmin(body_ns, sums.high * ns_per_tick);
    return body_ns / sums.count * (sums.count + sums.tail_count);
}
