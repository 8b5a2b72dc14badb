/* Replaces the size of a page for the code under test. A test includes it once, and sets the size.
 */
#ifndef SJ_TESTS_SUPPORT_PAGE_SIZE_H
#define SJ_TESTS_SUPPORT_PAGE_SIZE_H

#include "agent/abi/page.h"

static uint64_t page_bytes = 4096;

uint64_t sj_page_bytes(void)
{
    return page_bytes;
}

#endif
