/* Texts of the reasons why a function is not hooked. */
#ifndef SJ_AGENT_ABI_SKIP_TEXT_H
#define SJ_AGENT_ABI_SKIP_TEXT_H

#include "agent/abi/plan.h"

/* Returns the text of a reason, which users see and sessions store, or "unknown reason" if there is
 * none. The text is "" for SJ_SKIP_NONE. Any thread. */
const char *sj_skip_text(uint32_t skip);

#endif
