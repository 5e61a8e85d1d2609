// Replaces what the generated client uses of packages that Debian does not have: Polly, JsonSubTypes, and the naming strategies of
// Json.NET, which are newer than Debian's version 6. The client works with these replacements, but makes no retries with Polly.
extern alias jsonnet;

using System;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;

namespace Polly
{
    public interface ISyncPolicy<T> { }

    public interface IAsyncPolicy<T>
    {
        Task<PolicyResult<T>> ExecuteAndCaptureAsync(Func<Task<T>> action);

        Task<PolicyResult<T>> ExecuteAndCaptureAsync(Func<CancellationToken, Task<T>> action, CancellationToken token);
    }

    public enum OutcomeType { Successful, Failure }

    public class PolicyResult<T>
    {
        public OutcomeType Outcome { get; set; }
        public T Result { get; set; }
        public Exception FinalException { get; set; }
    }
}

// The generated code imports the namespace, and uses nothing of it.
namespace JsonSubTypes { }

namespace Newtonsoft.Json.Serialization
{
    // Every property of the generated code has a name of its own, so the strategy has no effect.
    public class CamelCaseNamingStrategy
    {
        public bool OverrideSpecifiedNames { get; set; }
        public bool ProcessDictionaryKeys { get; set; }
    }

    public class DefaultContractResolver : jsonnet::Newtonsoft.Json.Serialization.DefaultContractResolver
    {
        public CamelCaseNamingStrategy NamingStrategy { get; set; }
    }
}
