#include "collector-server/control/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

sj_status sj_certificate_read(const char *path, char *pem, sj_error *error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return sj_fail(error, errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO, "cannot read %s: %s", path,
                       strerror(errno));
    }
    const ssize_t got = read(file, pem, SJ_PEM_MAX_BYTES - 1);
    close(file);
    if (got <= 0) {
        return sj_fail(error, SJ_EIO, "%s is empty", path);
    }
    pem[got] = '\0';
    return SJ_OK;
}

static sj_status write_file(const char *path, const char *text, sj_error *error)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const size_t size = strlen(text);
    const bool written = file >= 0 && write(file, text, size) == (ssize_t)size && fsync(file) == 0;
    if (file >= 0) {
        close(file);
    }
    return written ? SJ_OK : sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(errno));
}

typedef struct maker {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key;
    mbedtls_x509write_cert certificate;
    mbedtls_mpi serial;
} maker;

static int make_key(maker *made)
{
    int result =
        mbedtls_ctr_drbg_seed(&made->random, mbedtls_entropy_func, &made->entropy, NULL, 0);
    if (result == 0) {
        result = mbedtls_pk_setup(&made->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
    }
    return result != 0 ? result
                       : mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(made->key),
                                             mbedtls_ctr_drbg_random, &made->random);
}

static int describe(maker *made)
{
    static const char name[] = "CN=sojourn-lab";
    char from[16];
    char to[16];
    /* A day back: clocks of devices may be behind. */
    const time_t now = time(NULL) - 86400;
    const time_t end = now + INT64_C(10) * 366 * 86400;
    struct tm utc;
    unsigned char serial[8];
    gmtime_r(&now, &utc);
    strftime(from, sizeof(from), "%Y%m%d%H%M%S", &utc);
    gmtime_r(&end, &utc);
    strftime(to, sizeof(to), "%Y%m%d%H%M%S", &utc);
    if (getrandom(serial, sizeof(serial), 0) != (ssize_t)sizeof(serial)) {
        return -1;
    }
    serial[0] &= 0x7f;
    mbedtls_x509write_cert *certificate = &made->certificate;
    mbedtls_x509write_crt_set_version(certificate, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(certificate, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(certificate, &made->key);
    mbedtls_x509write_crt_set_issuer_key(certificate, &made->key);
    int result = mbedtls_mpi_read_binary(&made->serial, serial, sizeof(serial));
    result |= mbedtls_x509write_crt_set_serial(certificate, &made->serial);
    result |= mbedtls_x509write_crt_set_subject_name(certificate, name);
    result |= mbedtls_x509write_crt_set_issuer_name(certificate, name);
    result |= mbedtls_x509write_crt_set_validity(certificate, from, to);
    return result | mbedtls_x509write_crt_set_basic_constraints(certificate, 1, 0);
}

static sj_status make_pair(char *certificate, char *key, sj_error *error)
{
    maker made;
    mbedtls_entropy_init(&made.entropy);
    mbedtls_ctr_drbg_init(&made.random);
    mbedtls_pk_init(&made.key);
    mbedtls_x509write_crt_init(&made.certificate);
    mbedtls_mpi_init(&made.serial);
    int result = make_key(&made);
    if (result == 0) {
        result = describe(&made);
    }
    if (result == 0) {
        result = mbedtls_x509write_crt_pem(&made.certificate, (unsigned char *)certificate,
                                           SJ_PEM_MAX_BYTES, mbedtls_ctr_drbg_random, &made.random);
    }
    if (result == 0) {
        result = mbedtls_pk_write_key_pem(&made.key, (unsigned char *)key, SJ_PEM_MAX_BYTES);
    }
    mbedtls_mpi_free(&made.serial);
    mbedtls_x509write_crt_free(&made.certificate);
    mbedtls_pk_free(&made.key);
    mbedtls_ctr_drbg_free(&made.random);
    mbedtls_entropy_free(&made.entropy);
    return result == 0 ? SJ_OK
                       : sj_fail(error, SJ_EIO, "cannot make a certificate (mbedTLS -0x%04x)",
                                 (unsigned)-result);
}

sj_status sj_certificate_load(const char *directory, char *certificate, char *key, sj_error *error)
{
    char certificate_path[PATH_MAX];
    char key_path[PATH_MAX];
    snprintf(certificate_path, sizeof(certificate_path), "%.4000s/certificate.pem", directory);
    snprintf(key_path, sizeof(key_path), "%.4000s/key.pem", directory);
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        return sj_fail(error, SJ_EIO, "cannot make %s: %s", directory, strerror(errno));
    }
    if (access(certificate_path, F_OK) != 0 && access(key_path, F_OK) != 0) {
        SJ_TRY(make_pair(certificate, key, error));
        SJ_TRY(write_file(key_path, key, error));
        return write_file(certificate_path, certificate, error);
    }
    SJ_TRY(sj_certificate_read(certificate_path, certificate, error));
    return sj_certificate_read(key_path, key, error);
}

sj_status sj_certificate_ends(const char *pem, char *text, bool *is_valid, sj_error *error)
{
    mbedtls_x509_crt parsed;
    mbedtls_x509_crt_init(&parsed);
    const int result = mbedtls_x509_crt_parse(&parsed, (const unsigned char *)pem, strlen(pem) + 1);
    if (result == 0) {
        const mbedtls_x509_time *end = &parsed.valid_to;
        char moment[64];
        snprintf(moment, sizeof(moment), "%04d-%02d-%02d %02d:%02d:%02d", end->year, end->mon,
                 end->day, end->hour, end->min, end->sec);
        snprintf(text, SJ_MOMENT_BYTES, "%.19s", moment);
        *is_valid = mbedtls_x509_time_is_past(end) == 0 &&
                    mbedtls_x509_time_is_future(&parsed.valid_from) == 0;
    }
    mbedtls_x509_crt_free(&parsed);
    return result == 0
               ? SJ_OK
               : sj_fail(error, SJ_ECORRUPT, "no certificate (mbedTLS -0x%04x)", (unsigned)-result);
}
