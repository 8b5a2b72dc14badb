#include "collector-server/fleet/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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
    const int problem = errno;
    close(file);
    if (got < 0) {
        return sj_fail(error, SJ_EIO, "cannot read %s: %s", path, strerror(problem));
    }
    if (got == 0 || got == SJ_PEM_MAX_BYTES - 1) {
        return sj_fail(error, SJ_EIO, "%s is %s", path, got == 0 ? "empty" : "too long");
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

/* Fills in `certificate` for the public part of `key`, and signs it with `key` itself. */
static int describe(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
    static const char name[] = "sojourn-collector";
    uint8_t serial[8];
    uint8_t key_id[20];
    size_t key_id_bytes = sizeof(key_id);
    /* The validity starts a day ago, because a device's clock may be slow. */
    const time_t from = time(NULL) - 86400;
    int result = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
    serial[0] &= 0x7f;
    result = result < 0 ? result : gnutls_x509_crt_set_version(certificate, 3);
    result = result < 0 ? result : gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial));
    result = result < 0 ? result : gnutls_x509_crt_set_activation_time(certificate, from);
    result = result < 0 ? result
                        : gnutls_x509_crt_set_expiration_time(certificate,
                                                              from + INT64_C(10) * 366 * 86400);
    result = result < 0 ? result
                        : gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                                        name, sizeof(name) - 1);
    result = result < 0 ? result : gnutls_x509_crt_set_key(certificate, key);
    result = result < 0 ? result : gnutls_x509_crt_set_basic_constraints(certificate, 1, 0);
    result =
        result < 0 ? result : gnutls_x509_crt_get_key_id(certificate, 0, key_id, &key_id_bytes);
    result =
        result < 0 ? result : gnutls_x509_crt_set_subject_key_id(certificate, key_id, key_id_bytes);
    return result < 0 ? result
                      : gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0);
}

/* Writes the NUL after a PEM text, which GnuTLS does not count in `size`. Does nothing if
 * `result` is an error. Returns `result`. */
static int write_pem(int result, char *pem, size_t size)
{
    if (result >= 0) {
        pem[size] = '\0';
    }
    return result;
}

static sj_status make_pair(char *certificate, char *key, sj_error *error)
{
    gnutls_x509_crt_t made = NULL;
    gnutls_x509_privkey_t secret = NULL;
    size_t certificate_bytes = SJ_PEM_MAX_BYTES - 1;
    size_t key_bytes = SJ_PEM_MAX_BYTES - 1;
    int result = gnutls_x509_crt_init(&made);
    result = result < 0 ? result : gnutls_x509_privkey_init(&secret);
    result =
        result < 0
            ? result
            : gnutls_x509_privkey_generate(secret, GNUTLS_PK_ECDSA,
                                           GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    result = result < 0 ? result : describe(made, secret);
    result = result < 0 ? result
                        : gnutls_x509_crt_export(made, GNUTLS_X509_FMT_PEM, certificate,
                                                 &certificate_bytes);
    result = write_pem(result, certificate, certificate_bytes);
    result = result < 0 ? result
                        : gnutls_x509_privkey_export(secret, GNUTLS_X509_FMT_PEM, key, &key_bytes);
    result = write_pem(result, key, key_bytes);
    if (made != NULL) {
        gnutls_x509_crt_deinit(made);
    }
    if (secret != NULL) {
        gnutls_x509_privkey_deinit(secret);
    }
    return result >= 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot make a certificate: %s", gnutls_strerror(result));
}

/* Returns SJ_EPERM if a user other than this one and root owns the file: the owner of the key
 * can sign as this collector. Also returns SJ_EPERM if the file has any mode bit of `forbidden`.
 * Callers allow the group to read the key, because Debian's ssl-cert is set up so. */
static sj_status check_owner(const char *path, mode_t forbidden, sj_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        return sj_fail(error, SJ_EIO, "cannot read %s: %s", path, strerror(errno));
    }
    if (about.st_uid != 0 && about.st_uid != geteuid()) {
        return sj_fail(error, SJ_EPERM,
                       "%s belongs to another user, who may have passed it on; \"chown\" it, or "
                       "remove it to get a new one",
                       path);
    }
    return (about.st_mode & forbidden) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EPERM, "%s may be %s by others; \"chmod go-rwx\" it", path,
                         (about.st_mode & forbidden & 022) != 0 ? "changed" : "read");
}

/* True if the file does not exist. Returns false if the file cannot be reached for another
 * reason. */
static bool is_missing(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
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
    SJ_TRY(check_owner(directory, 022, error));
    if (is_missing(certificate_path) && is_missing(key_path)) {
        SJ_TRY(make_pair(certificate, key, error));
        SJ_TRY(write_file(key_path, key, error));
        return write_file(certificate_path, certificate, error);
    }
    SJ_TRY(check_owner(certificate_path, 022, error));
    SJ_TRY(check_owner(key_path, 026, error));
    SJ_TRY(sj_certificate_read(certificate_path, certificate, error));
    return sj_certificate_read(key_path, key, error);
}

sj_status sj_certificate_ends(const char *pem, char *text, bool *is_valid, sj_error *error)
{
    const gnutls_datum_t bytes = {.data = (unsigned char *)(uintptr_t)pem,
                                  .size = (unsigned)strlen(pem)};
    gnutls_x509_crt_t parsed = NULL;
    int result = gnutls_x509_crt_init(&parsed);
    if (result >= 0) {
        result = gnutls_x509_crt_import(parsed, &bytes, GNUTLS_X509_FMT_PEM);
    }
    if (result >= 0) {
        const time_t end = gnutls_x509_crt_get_expiration_time(parsed);
        const time_t now = time(NULL);
        struct tm utc;
        gmtime_r(&end, &utc);
        strftime(text, SJ_MOMENT_BYTES, "%Y-%m-%d %H:%M:%S", &utc);
        *is_valid = now < end && now >= gnutls_x509_crt_get_activation_time(parsed);
    }
    if (parsed != NULL) {
        gnutls_x509_crt_deinit(parsed);
    }
    return result >= 0 ? SJ_OK
                       : sj_fail(error, SJ_ECORRUPT, "no certificate: %s", gnutls_strerror(result));
}
