// Declares what the generated client uses of packages that Debian does not have, so that it can be compiled without them:
// Polly, JsonSubTypes, and the naming strategies of Json.NET, which are newer than Debian's version 6.
using System;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json;
using Newtonsoft.Json.Serialization;

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

namespace JsonSubTypes
{
    public class JsonSubtypes : JsonConverter
    {
        public JsonSubtypes(string discriminator) { }

        public override bool CanConvert(Type type) { return false; }

        public override object ReadJson(JsonReader reader, Type type, object value, JsonSerializer serializer) { return null; }

        public override void WriteJson(JsonWriter writer, object value, JsonSerializer serializer) { }

        [AttributeUsage(AttributeTargets.Class, AllowMultiple = true)]
        public class KnownSubTypeAttribute : Attribute
        {
            public KnownSubTypeAttribute(Type type, object value) { }
        }
    }
}

namespace Newtonsoft.Json.Serialization
{
    public class CamelCaseNamingStrategy
    {
        public bool OverrideSpecifiedNames { get; set; }
        public bool ProcessDictionaryKeys { get; set; }
    }

    public class DefaultContractResolver : IContractResolver
    {
        public CamelCaseNamingStrategy NamingStrategy { get; set; }

        public JsonContract ResolveContract(Type type) { return null; }
    }
}
