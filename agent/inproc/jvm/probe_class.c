/* The class file of the probes (JVM specification, chapter 4):
 *
 *     package java.sojourn;
 *     public final class Probe {
 *         public static native void enter(int function);
 *         public static native void leave(int function);
 *         public static native void unwind(int function);
 *     }
 */
#include "agent/inproc/jvm/internal.h"

#define U2(value) (value) >> 8, (value)&0xff
#define CLASS_CONSTANT(name) 7, U2(name)
#define NATIVE_METHOD(name) U2(0x0109), U2(name), U2(8), U2(0)

/* clang-format off */
const uint8_t sj_jvm_probe_class[] = {
    0xca, 0xfe, 0xba, 0xbe, U2(0), U2(52),
    U2(9), /* number of constants + 1 */
    1, U2(18), 'j', 'a', 'v', 'a', '/', 's', 'o', 'j', 'o', 'u', 'r', 'n', '/', 'P', 'r', 'o', 'b', 'e', /* 1 */
    CLASS_CONSTANT(1),                                                                         /* 2 */
    1, U2(16), 'j', 'a', 'v', 'a', '/', 'l', 'a', 'n', 'g', '/', 'O', 'b', 'j', 'e', 'c', 't', /* 3 */
    CLASS_CONSTANT(3),                                                                         /* 4 */
    1, U2(5), 'e', 'n', 't', 'e', 'r',                                                         /* 5 */
    1, U2(5), 'l', 'e', 'a', 'v', 'e',                                                         /* 6 */
    1, U2(6), 'u', 'n', 'w', 'i', 'n', 'd',                                                    /* 7 */
    1, U2(4), '(', 'I', ')', 'V',                                                              /* 8 */
    U2(0x0031), U2(2), U2(4),
    U2(0), U2(0), /* interfaces, fields */
    U2(3), NATIVE_METHOD(5), NATIVE_METHOD(6), NATIVE_METHOD(7),
    U2(0) /* attributes */
};
/* clang-format on */

const uint32_t sj_jvm_probe_class_bytes = sizeof(sj_jvm_probe_class);
