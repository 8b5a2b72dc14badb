#include "agent/daemon/enrolment.h"

#include "agent/daemon/collector_client.h"
#include "agent/daemon/state_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 15000, TOKEN_DIGITS = 64 };

static const char file_name[] = "collector.json";

static char *dup_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL && text[0] != '\0' ? strdup(text) : NULL;
}

sj_status sj_enrolment_load(sj_enrolment *enrolment, sj_error *error)
{
    json_t *object = NULL;
    *enrolment = (sj_enrolment){0};
    const sj_status status = sj_state_file_load(file_name, &object, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "this device is not enrolled; run \"sojourn-device enroll --token-file "
                       "FILE\" with a file made by \"sojourn device invite\" on the collector");
    }
    SJ_TRY(status);
    enrolment->collector = dup_text(object, "collector");
    enrolment->token = dup_text(object, "token");
    enrolment->certificate = dup_text(object, "certificate");
    json_decref(object);
    if (enrolment->collector == NULL || enrolment->token == NULL) {
        sj_enrolment_deinit(enrolment);
        return sj_fail(error, SJ_ECORRUPT, "%s names no collector or no token; enrol again",
                       file_name);
    }
    return SJ_OK;
}

void sj_enrolment_deinit(sj_enrolment *enrolment)
{
    free(enrolment->collector);
    free(enrolment->token);
    free(enrolment->certificate);
    *enrolment = (sj_enrolment){0};
}

/* Copies the name and the tags of the enrolment to `*device`. */
static void take_names(const json_t *object, sj_device *device)
{
    const char *key;
    json_t *value;
    const char *name = json_string_value(json_object_get(object, "name"));
    if (name != NULL && name[0] != '\0') {
        snprintf(device->name, sizeof(device->name), "%s", name);
    }
    json_object_foreach(json_object_get(object, "tags"), key, value)
    {
        if (json_is_string(value) && device->tag_count < SJ_DEVICE_TAGS) {
            snprintf(device->tags[device->tag_count++], SJ_DEVICE_TAG_BYTES, "%s=%s", key,
                     json_string_value(value));
        }
    }
}

sj_status sj_enrolment_device(sj_device *device, sj_error *error)
{
    json_t *object = NULL;
    SJ_TRY(sj_device_read(device, error));
    const sj_status status = sj_state_file_load(file_name, &object, error);
    take_names(object, device);
    json_decref(object);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

static bool is_tag_key(const char *key, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    return size != 0 && size <= 64 && strspn(key, letters) >= size;
}

/* Sets or removes one tag of the object "tags". */
static sj_status set_tag(json_t *tags, const char *text, sj_error *error)
{
    char key[65];
    const char *equals = strchr(text, '=');
    if (equals == NULL || !is_tag_key(text, (size_t)(equals - text)) ||
        strlen(text) >= SJ_DEVICE_TAG_BYTES) {
        return sj_fail(
            error, SJ_EINVAL,
            "the tag \"%.100s\" has to be KEY=VALUE of at most %d bytes; a key is made of "
            "letters, digits, . _ -",
            text, SJ_DEVICE_TAG_BYTES - 1);
    }
    snprintf(key, sizeof(key), "%.*s", (int)(equals - text), text);
    if (equals[1] == '\0') {
        json_object_del(tags, key);
        return SJ_OK;
    }
    json_t *value = json_string(equals + 1);
    if (value == NULL || json_object_set_new(tags, key, value) != 0) {
        return sj_fail(error, SJ_EINVAL, "the tag \"%.64s\" is not UTF-8", key);
    }
    return json_object_size(tags) <= SJ_DEVICE_TAGS
               ? SJ_OK
               : sj_fail(error, SJ_ELIMIT, "a device has at most %d tags", SJ_DEVICE_TAGS);
}

/* Writes name and tags to the stored object. */
static sj_status set_names(json_t *object, const sj_enrolment_names *names, sj_error *error)
{
    if (names->name != NULL) {
        json_t *name = json_string(names->name);
        const size_t size = strlen(names->name);
        if (name == NULL || size == 0 || size >= sizeof(((sj_device *)NULL)->name)) {
            json_decref(name);
            return sj_fail(error, SJ_EINVAL, "a device's name has 1 to 127 bytes of UTF-8");
        }
        json_object_set_new(object, "name", name);
    }
    if (!json_is_object(json_object_get(object, "tags"))) {
        json_object_set_new(object, "tags", json_object());
    }
    for (size_t i = 0; i < names->tag_count; i++) {
        SJ_TRY(set_tag(json_object_get(object, "tags"), names->tags[i], error));
    }
    return SJ_OK;
}

sj_status sj_enrolment_rename(const sj_enrolment_names *names, sj_error *error)
{
    json_t *object = NULL;
    sj_status status = sj_state_file_load(file_name, &object, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, status, "this device is not enrolled");
    }
    if (status == SJ_OK) {
        status = set_names(object, names, error);
    }
    if (status == SJ_OK) {
        status = sj_state_file_keep(file_name, object, error);
    }
    json_decref(object);
    return status;
}

sj_status sj_invitation_check(const json_t *invitation, sj_error *error)
{
    const char *collector = json_string_value(json_object_get(invitation, "collector"));
    const char *token = json_string_value(json_object_get(invitation, "token"));
    const char *certificate = json_string_value(json_object_get(invitation, "certificate"));
    if (collector == NULL || strstr(collector, "://") == NULL) {
        return sj_fail(error, SJ_EINVAL,
                       "the invitation's \"collector\" is no address such as "
                       "tls+tcp://collector:7655");
    }
    if (token == NULL || strlen(token) != TOKEN_DIGITS ||
        strspn(token, "0123456789abcdef") != TOKEN_DIGITS) {
        return sj_fail(error, SJ_EINVAL, "the invitation's \"token\" is no token of %d digits",
                       TOKEN_DIGITS);
    }
    if (strncmp(collector, "tls+", 4) == 0 &&
        (certificate == NULL || strstr(certificate, "-----BEGIN CERTIFICATE-----") == NULL)) {
        return sj_fail(error, SJ_EINVAL,
                       "the invitation has no \"certificate\", which %.100s needs", collector);
    }
    return SJ_OK;
}

/* Sends the invitation's token, and writes the device's own token to `object`. */
static sj_status ask_collector(json_t *object, const sj_device *device, const char *token,
                               char *hint, sj_error *error)
{
    const char *collector = json_string_value(json_object_get(object, "collector"));
    sj_server_client *client = NULL;
    sj_server_answer answer = {0};
    uint8_t *frame = NULL;
    size_t size = 0;
    SJ_TRY(sj_server_client_open(
        collector, json_string_value(json_object_get(object, "certificate")), &client, error));
    sj_status status = sj_device_hello(device, token, (sj_slice){0}, &frame, &size);
    if (status == SJ_OK) {
        status = sj_server_client_retype(frame, size, SJ_FRAME_ENROL);
    }
    if (status == SJ_OK) {
        status = sj_server_client_ask(client, (sj_slice){.data = frame, .size = size}, ANSWER_MS,
                                      &answer, error);
    }
    if (status == SJ_OK && answer.enrolled == NULL) {
        status = sj_fail(error, SJ_EUNSUPPORTED, "%s is not a Sojourn collector with a fleet",
                         collector);
    } else if (status == SJ_OK && answer.enrolled->status != SJ_OK) {
        status = sj_fail(error, SJ_EPERM, "the collector refuses: %s", answer.enrolled->message);
    } else if (status == SJ_OK) {
        json_object_set_new(object, "token", json_string(answer.enrolled->token));
        snprintf(hint, SJ_ERROR_TEXT_BYTES, "%s", answer.enrolled->message);
    }
    sj_server_answer_deinit(&answer);
    sj_server_client_close(client);
    free(frame);
    return status;
}

sj_status sj_enrolment_make(const char *invitation_path, const char *collector,
                            const sj_enrolment_names *names, char *hint, sj_error *error)
{
    json_t *object = NULL;
    sj_device device;
    hint[0] = '\0';
    SJ_TRY(sj_device_read(&device, error));
    SJ_TRY(sj_state_file_read(invitation_path, &object, error));
    if (collector != NULL) {
        json_object_set_new(object, "collector", json_string(collector));
    }
    json_object_set_new(object, "name", json_string(device.name));
    char *token = dup_text(object, "token");
    sj_status status = sj_invitation_check(object, error);
    if (status == SJ_OK) {
        status = set_names(object, names, error);
    }
    if (status == SJ_OK) {
        take_names(object, &device);
        status = ask_collector(object, &device, token, hint, error);
    }
    if (status == SJ_OK) {
        status = sj_state_file_keep(file_name, object, error);
    }
    free(token);
    json_decref(object);
    return status;
}
