/* Design notes. A bin of a histogram is up to 6 % wide, wider than the slowdowns of interest. So
 * the time of the undisturbed calls is the exact total minus the estimate for the disturbed calls.
 * The bins only limit it: all undisturbed calls at the low ends of their bins are the minimum, and
 * at the high ends the maximum. */
#include "collector-server/query/typical.h"

#include "proto/callgraph/histogram.h"

#include <math.h>

typedef struct body_sums {
    double count, low, high; /* undisturbed calls; sums of the ends of their bins in ticks */
    double tail_count, tail; /* disturbed calls; sum of the middles of their bins in ticks */
} body_sums;

/* Adds a histogram's undisturbed calls to one group of sums, and its other calls to the sums of the
 * tail. A call is undisturbed if its bin begins at `limit` ticks or below. */
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
