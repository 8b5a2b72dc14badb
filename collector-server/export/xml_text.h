/* Writes XML text to a stream. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_XML_TEXT_H
#define SJ_COLLECTOR_SERVER_EXPORT_XML_TEXT_H

#include <stdio.h>

/* Writes `text` for use in an attribute or between tags. XML readers refuse some bytes: bytes that
 * are not UTF-8 become U+FFFD, and control characters become "?". */
void sj_xml_text(FILE *file, const char *text);

#endif
