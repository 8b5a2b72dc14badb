#include "agent/uplink/dial.h"

#include <nng/supplemental/tls/tls.h>
#include <string.h>

/* The name in certificates that `sojournd` makes for itself. */
static const char lab_name[] = "sojourn-lab";

static int set_trust(nng_dialer dialer, const char *certificate)
{
    nng_tls_config *trust = NULL;
    int result = nng_tls_config_alloc(&trust, NNG_TLS_MODE_CLIENT);
    if (result != 0) {
        return result;
    }
    if ((result = nng_tls_config_auth_mode(trust, NNG_TLS_AUTH_MODE_REQUIRED)) == 0 &&
        (result = nng_tls_config_server_name(trust, lab_name)) == 0 &&
        (result = nng_tls_config_ca_chain(trust, certificate, NULL)) == 0) {
        result = nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, trust);
    }
    nng_tls_config_free(trust);
    return result;
}

int sj_dial(nng_socket socket, const char *url, const char *certificate)
{
    nng_dialer dialer;
    if (strncmp(url, "tls+", 4) != 0) {
        return nng_dial(socket, url, NULL, NNG_FLAG_NONBLOCK);
    }
    if (certificate == NULL) {
        return NNG_ECRYPTO;
    }
    int result = nng_dialer_create(&dialer, socket, url);
    if (result == 0) {
        result = set_trust(dialer, certificate);
    }
    return result == 0 ? nng_dialer_start(dialer, NNG_FLAG_NONBLOCK) : result;
}
