// Which sanitizer this is compiled for: GCC defines a name, Clang answers a question.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define WEFT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define WEFT_THREAD_SANITIZER 1
#endif
#endif

namespace weft {

#ifdef WEFT_ADDRESS_SANITIZER
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif
// Code is several times as slow, and what was freed is kept from use for a while: memory grows.
#if defined(WEFT_ADDRESS_SANITIZER) || defined(WEFT_THREAD_SANITIZER)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace weft
