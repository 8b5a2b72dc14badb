/* Draws the calls of streams for timelines: those that begin in a time window or were open at its
 * start, as bars in rows. The row of a call is its depth. If recursion is folded, a call whose
 * caller has the same function has no row of its own: the bar of the outermost of these calls says
 * how many levels it holds. Recursion is folded only in streams with more levels than the requested
 * rows.
 *
 * A call narrower than a pixel joins the bar of the previous narrow call of its row, if both begin
 * in the same pixel. A bar has the count of its calls and all their flags. So a stream has at most
 * `width` bars for each row, plus one for each wide call. A stream has at most 30,000 bars, and all
 * streams of a picture together have at most 90,000; `truncated` says that bars are missing. Not
 * thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_CALLS_PICTURE_H
#define SJ_COLLECTOR_SERVER_HTTP_CALLS_PICTURE_H

#include "proto/base/error.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* The most rows and pixels of a stream. */
enum { SJ_CALLS_PICTURE_ROWS = 4096, SJ_CALLS_PICTURE_WIDTH = 4000 };

/* The part of a stream that is drawn. */
typedef struct sj_calls_window {
    int64_t stream_id;
    int64_t from_ns, to_ns;
    int64_t width;     /* pixels */
    int64_t first_row; /* rows above this one are not drawn */
    int64_t row_count; /* 1 to SJ_CALLS_PICTURE_ROWS */
    bool folds;        /* fold direct recursion if there are more levels than rows */
} sj_calls_window;

/* The names of functions and the statements that all streams of an answer share. */
typedef struct sj_calls_picture sj_calls_picture;

/* Makes a picture of a session. The picture borrows `database`. Fails with SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_calls_picture_new(sqlite3 *database, int64_t session_id,
                                             sj_calls_picture **picture, sj_error *error);
void sj_calls_picture_free(sj_calls_picture *picture); /* NULL is allowed */

/* Draws a stream, and adds the members `rows`, `levels`, `is_folded`, `truncated`, `is_too_many`
 * and `calls_in_blocks` to `track`. Fails with SJ_ETIMEDOUT if the database's progress handler
 * interrupts it, SJ_ENOMEM or SJ_EIO. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_calls_picture_draw(sj_calls_picture *picture,
                                              const sj_calls_window *window, json_t *track,
                                              sj_error *error);

/* Adds to `body` what all drawn streams share: the members `columns` (of their rows), `functions`,
 * `calls_counted` and `warnings`. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_calls_picture_finish(sj_calls_picture *picture, json_t *body,
                                                sj_error *error);

#endif
