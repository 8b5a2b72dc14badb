/* Includes cmocka after the headers that cmocka needs. */
#ifndef SJ_TESTS_SUPPORT_CHECK_H
#define SJ_TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#endif
